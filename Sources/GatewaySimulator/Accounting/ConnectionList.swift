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
