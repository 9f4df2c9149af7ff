import Foundation
import Measurement
import Synchronization

/// The connections that the ledger lists, up to a limit.
final class ConnectionList: Sendable {
  private struct Listed {
    var connections: [Ledger.Connection] = []
    var omitted = 0
  }

  private let maximum: Int
  private let listed = Mutex(Listed())

  init(maximum: Int) { self.maximum = maximum }

  func add(_ connection: @autoclosure () -> Ledger.Connection) {
    let isFull = listed.withLock { listed in
      if listed.connections.count < maximum { return false }
      listed.omitted += 1
      return true
    }
    guard !isFull else { return }
    let connection = connection()
    listed.withLock { $0.connections.append(connection) }
  }

  var all: (connections: [Ledger.Connection], omitted: Int) { listed.withLock { ($0.connections, $0.omitted) } }
}

/// UNIX nanoseconds UTC as the ledger writes them: RFC 3339 with milliseconds.
func rfc3339(_ nanoseconds: Int64) -> String {
  let date = Date(timeIntervalSince1970: Double(nanoseconds / 1_000) / 1e6)
  return date.formatted(
    .iso8601.year().month().day().time(includingFractionalSeconds: true).timeZone(separator: .omitted))
}
