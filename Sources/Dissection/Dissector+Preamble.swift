import BinaryProtocol
import Bytes
import Records
import TLSDecryption

/// Preambles: the bytes of a proxy or of STARTTLS before the first record of a connection are named and skipped.
extension Dissector {
  /// Removes preambles from the held bytes of one direction. `true`: nothing can be decided yet.
  mutating func waitsForPreamble(_ connection: Connection, _ fromHigh: Bool, isFinal: Bool) -> Bool {
    var hasTaken = false
    while true {
      let first = held(connection, fromHigh)
      // A gap is decided even so; the end of a direction that had no other bytes is not.
      if first.isEmpty { return hasTaken || !isFinal }
      let fromClient = connection.clientIsHigh.map { $0 == fromHigh }
      let step = connection.preamble.next(
        first.rawBytes, fromClient: fromClient, isStart: connection.startWasCaptured)
      switch step {
      case .needsMore: return !isFinal
      case .taken(let length):
        if connection.clientIsHigh == nil { connection.clientIsHigh = fromHigh }
        drop(length, connection, fromHigh)
        hasTaken = true
        // What follows is complete, and the preamble may have named its port.
        connection.decideByPorts(options.ports)
        continue
      case .none: break
      }
      return waitsForText(first, connection, fromHigh, isFinal: isFinal)
    }
  }

  /// Text is held while nothing else has come: what follows decides whether it is a preamble.
  private mutating func waitsForText(
    _ first: [UInt8], _ connection: Connection, _ fromHigh: Bool, isFinal: Bool
  ) -> Bool {
    guard connection.startWasCaptured, connection.preamble.kind == nil, OtherProtocol(beginning: first) == nil else {
      return false
    }
    let text = LeadingText(first.rawBytes)
    if text.mayGrow { return !isFinal && first.count < PreambleReader.longest }
    guard text.length > 0 else { return false }
    let rest = first.rawBytes.extracting(text.length..<first.count)
    switch TLSRecognition.begins(rest) {
    case .needsMore: return !isFinal
    case .no:
      switch GatewayGrammar(limits: options.limits).probe(rest, 0, beginsBetween: true, atEnd: isFinal) {
      case .needsMore: return !isFinal
      case .no: return false
      case .yes: break
      }
    case .yes: break
    }
    dropText(connection)
    return false
  }

  /// Removes leading text from both directions, if TLS or frames follow it in either of them.
  mutating func dropText(_ connection: Connection) {
    guard connection.startWasCaptured, connection.flow != nil else { return }
    for fromHigh in [false, true] {
      let first = held(connection, fromHigh)
      guard OtherProtocol(beginning: first) == nil else { continue }
      let text = LeadingText(first.rawBytes)
      guard text.length > 0, text.isAll ? text.length == first.count : true else { continue }
      if !text.isAll {
        let rest = first.rawBytes.extracting(text.length..<first.count)
        guard TLSRecognition.begins(rest) == .yes || (0...8).contains(rest.byte(at: 0)) else { continue }
      }
      connection.preamble.noteText(text.kind)
      drop(text.length, connection, fromHigh)
    }
  }

  /// TLS begins after unread bytes of another protocol, as with databases and directories (STARTTLS).
  ///
  /// - Parameter count: bytes of the packet with the TLS record, which are counted already.
  func noteOtherPreamble(_ count: Int, _ connection: Connection, _ fromHigh: Bool) {
    var (low, high) = clientStreams[connection.slot].byteCounts
    if fromHigh { high -= count } else { low -= count }
    guard connection.startWasCaptured, low + high > 0 else { return }
    connection.preamble.noteText(.other)
    connection.preambleBytes.low += low
    connection.preambleBytes.high += high
  }

  private func held(_ connection: Connection, _ fromHigh: Bool) -> [UInt8] {
    (fromHigh ? connection.directions.high : connection.directions.low).held.flatMap(\.bytes)
  }

  /// Drops the first bytes of a direction: they count as nothing.
  private mutating func drop(_ length: Int, _ connection: Connection, _ fromHigh: Bool) {
    var held = fromHigh ? connection.directions.high.held : connection.directions.low.held
    var left = length
    while left > 0, let piece = held.first {
      let count = min(left, piece.bytes.count)
      if count == piece.bytes.count {
        held.removeFirst()
      } else {
        held[0].bytes.removeFirst(count)
        held[0].offset += count
      }
      left -= count
    }
    if fromHigh { connection.directions.high.held = held } else { connection.directions.low.held = held }
    if fromHigh { connection.preambleBytes.high += length } else { connection.preambleBytes.low += length }
    clientStreams[connection.slot].count(-length, fromHigh: fromHigh)
  }
}
