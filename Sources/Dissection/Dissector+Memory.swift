import PacketCapture
import Records
import TLSDecryption

/// Decides when the memory held by all connections is checked.
///
/// Held memory cannot grow by more than was read, so nothing is counted per frame: the memory is checked when the bytes
/// read since the last check may have raised it to the limit. This depends on the batches of events alone, so that any
/// number of threads drops the same data.
struct MemoryBudget {
  let limit: Int
  /// Bytes that all connections held at the last check.
  private var held = 0
  /// The most bytes by which the held memory may have grown since.
  private var growth = 0
  /// Memory may grow by more than is read: over HTTP/2 a few bytes can refer to a long field. How much is known when they
  /// were read, so lanes keep further away from the limit.
  var isUnforeseen = false

  init(limit: Int) { self.limit = limit }

  /// The growth after which memory is checked; near the limit a part of the limit, because checks take time.
  private var step: Int { max((limit - held) / 2, limit / 16) }

  var isDue: Bool { growth >= step }

  /// Whether a check will be due after `more` further bytes.
  func isDue(after more: Int) -> Bool { growth + more >= (isUnforeseen ? step / 4 : step) }

  mutating func add(_ bytes: Int) { growth += bytes }

  mutating func note(held bytes: Int) { (held, growth) = (bytes, 0) }
}

extension Dissector {
  /// Checks what connections hold, and makes connections drop what exceeds the limit. No other thread reads a stream
  /// meanwhile.
  ///
  /// - Parameter position: the position of the last event.
  mutating func limitMemory(at position: StreamPosition) {
    var holders: [(connection: Connection, bytes: Int, isSilent: Bool)] = []
    var total = 0
    for case let connection? in connections {
      // Spare memory is not counted: how much there is depends on the number of threads.
      connection.freeSpare()
      clientStreams[connection.slot].freeSpare()
      let bytes = heldBytes(of: connection)
      let (low, high) = clientStreams[connection.slot].byteCounts
      let carried = connection.tls.map { $0.wireBytes(from: .client) + $0.wireBytes(from: .server) } ?? (low + high)
      if bytes > 0 { holders.append((connection, bytes, carried == connection.carriedBefore)) }
      connection.carriedBefore = carried
      total += bytes
    }
    if total > memory.limit {
      // Connections below half the average together hold less than half of the total, and keep it.
      let share = total / (2 * holders.count)
      let order = holders.filter { $0.bytes >= share }.sorted {
        ($0.isSilent ? 0 : 1, $0.connection.number) < ($1.isSilent ? 0 : 1, $1.connection.number)
      }
      let mark = CapturePosition(position)
      for holder in order {
        // Down to half of the limit, so that the next check of all connections is not due after a few bytes.
        guard total > memory.limit / 2 else { break }
        drop(holder.connection, mark)
        total -= holder.bytes - heldBytes(of: holder.connection)
      }
    }
    memory.note(held: total)
  }

  private func heldBytes(of connection: Connection) -> Int {
    // The capacity of arrays is up to twice their count.
    2 * (connection.heldBytes + clientStreams[connection.slot].heldBytes)
  }

  /// Makes a connection drop what it holds. Later bytes are read.
  private mutating func drop(_ connection: Connection, _ mark: CapturePosition) {
    if !connection.limits.contains(.memory) { connection.limits.append(.memory) }
    for fromHigh in [false, true] where reading(connection, fromHigh) == .undecided {
      let direction = fromHigh ? connection.directions.high : connection.directions.low
      if !direction.held.isEmpty { decide(connection, fromHigh, isFinal: true) }
    }
    connection.tls?.drop(at: CapturePoint(mark)) { consumePlaintext($0, $1, $2, $3, connection.slot) }
    releaseResponses(connection)
    clientStreams[connection.slot].drop(mark, into: &output)
    switch connection.reading {
    case .binary(let reader):
      reader.framer.drop()
      readFoundResponses(connection)
    case .feedback(let reader):
      reader.framer.drop()
      readFoundFeedback(connection)
    case .http2(let reader): dropHTTP2(connection, mark, reader)
    case .messages(let reader): dropMessages(connection, mark, reader)
    case .undecided, .opaque: break
    }
  }
}
