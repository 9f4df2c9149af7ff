import Bytes
import TestSupport
import Testing

@testable import TLSDecryption

/// What is left when a record of the handshake is missing.
@Suite struct HandshakeLossTests {
  static let kinds = LossTests.kinds

  /// A conversation's flushes cut into records.
  static func records(_ recorded: RecordedConversation) -> [RecordedConversation.Step] {
    recorded.steps.flatMap { step in
      var records: [RecordedConversation.Step] = []
      var position = 0
      while position < step.bytes.count {
        let length = 5 + Int(step.bytes[position + 3]) << 8 + Int(step.bytes[position + 4])
        records.append(.init(side: step.side, bytes: Array(step.bytes[position..<position + length])))
        position += length
      }
      return records
    }
  }

  /// Where the ServerHello is: the server's first handshake record. A later one is encrypted, and may begin with any byte.
  private static func serverHello(in records: [RecordedConversation.Step]) -> Int? {
    records.firstIndex { $0.side == .server && $0.bytes[0] == 22 }
  }

  /// Whether the record before which another one is missing is sealed, and by chance looks as if it was clear: random bytes
  /// whose first ones are the header of a message of just their length. Nobody can tell that then.
  private static func looksClear(after missing: Int, in records: [RecordedConversation.Step]) -> Bool {
    guard let next = records[missing...].dropFirst().first(where: { $0.side == records[missing].side }),
      records[missing].bytes[0] == 20, next.bytes[0] == 22
    else { return false }
    return TLSStream(secrets: Secrets(), limits: TLSLimits()).isClearHandshake(
      next.bytes.rawBytes.extracting(5..<next.bytes.count))
  }

  private static func recorded(_ kind: LossTests.Kind) throws -> RecordedConversation {
    var conversation = TLSConversation(version: kind.version, suite: kind.suite)
    conversation.usesEncryptThenMAC = kind.usesEncryptThenMAC
    conversation.clientAuthentication = .given
    conversation.insertsEmptyFragments = false
    return try conversation.record()
  }

  @Test("Data is opened whichever record of the handshake is missing", arguments: kinds)
  func dataIsOpenedWhicheverRecordOfTheHandshakeIs(kind: LossTests.Kind)
    throws
  {
    let recorded = try Self.recorded(kind)
    let records = Self.records(recorded)
    let firstData = try #require(
      records.firstIndex { $0.bytes[0] == 23 && kind.version != .tls13 || $0.bytes.count == 5 + 25 + 17 })
    let serverHello = try #require(Self.serverHello(in: records))
    #expect(records[serverHello].bytes[5] == 2)
    for missing in 0..<firstData where !Self.looksClear(after: missing, in: records) {
      let arrivals: [Arrival] = records.enumerated().map { index, record in
        index == missing ? .gap(record.side, record.bytes.count) : .bytes(record.side, record.bytes)
      }
      let run = StreamRun(arrivals, secrets: Secrets(keyLog: recorded.keyLogText))
      let name = Comment(
        rawValue: "record \(missing), type \(records[missing].bytes[0]), from the \(records[missing].side)")
      if missing == serverHello && kind.version != .tls13 {
        #expect(run.summary.problem == "no ServerHello in the capture", name)
        #expect(run.client.plaintext.isEmpty && run.server.plaintext.isEmpty, name)
        continue
      }
      let side = records[missing].side
      if kind.version == .tls10 && !records[missing + 1..<firstData].contains(where: { $0.side == side }) {
        // What TLS 1.0 takes from the record before the first data is gone: a block, or with the MAC inside the record.
        #expect(
          recorded.plaintext(of: side).count - run.output(side).plaintext.count
            == (kind.usesEncryptThenMAC ? 16 : 25), name)
        continue
      }
      #expect(run.client.plaintext == recorded.clientPlaintext, name)
      #expect(run.server.plaintext == recorded.serverPlaintext, name)
      #expect(run.client.gaps.isEmpty, name)
      // A lost ticket of TLS 1.3 cannot be told from lost data.
      let isTicket = kind.version == .tls13 && records[missing].side == .server && missing > firstData - 4
      #expect(run.server.gaps.isEmpty || isTicket, name)
    }
  }

  @Test("A direction of which the beginning is missing says what it lacks, or opens", arguments: kinds)
  func aDirectionOfWhichTheBeginningIsMissingSays(
    kind: LossTests.Kind
  ) throws {
    let recorded = try Self.recorded(kind)
    let records = Self.records(recorded)
    // In TLS 1.3 each beginning is searched for its place.
    for start in some(kind.version == .tls13 ? 2 : .max, of: Array(1..<records.count)) {
      let arrivals: [Arrival] = records[start...].map { .bytes($0.side, $0.bytes) }
      let run = StreamRun(arrivals, secrets: Secrets(keyLog: recorded.keyLogText))
      let name = Comment(rawValue: "from record \(start)")
      #expect(recorded.clientPlaintext.suffix(run.client.plaintext.count) == run.client.plaintext[...], name)
      #expect(recorded.serverPlaintext.suffix(run.server.plaintext.count) == run.server.plaintext[...], name)
      guard kind.version == .tls13 else { continue }
      // Every record of data from there on is opened.
      let before = StreamRun(
        records[..<start].map { .bytes($0.side, $0.bytes) }, secrets: Secrets(keyLog: recorded.keyLogText))
      for side in RecordedConversation.Side.allCases {
        #expect(
          run.output(side).plaintext
            == Array(recorded.plaintext(of: side).dropFirst(before.output(side).plaintext.count)), name)
      }
    }
  }

  @Test("TLS 1.3 is opened far inside a connection, also after key updates")
  func tls13IsOpenedFarInsideAConnectionAlsoAfter() throws {
    var conversation = TLSConversation(version: .tls13)
    conversation.script = (0..<300).map { .write(.client, [UInt8(truncatingIfNeeded: $0), 1, 2]) }
    let long = try conversation.record()
    let records = Self.records(long).filter { $0.side == .client }
    let late = records.suffix(5).map { Arrival.bytes(.client, $0.bytes) }
    let run = StreamRun(Array(late), secrets: Secrets(keyLog: long.keyLogText))
    #expect(run.client.plaintext.count >= 12)
    #expect(long.clientPlaintext.suffix(run.client.plaintext.count) == run.client.plaintext[...])
    #expect(run.summary.version == .tls13)
    #expect(run.exportedKeys.count == 1)

    conversation.script = [
      .write(.client, [1]), .updateKey(.client, asksPeer: false), .write(.client, [2, 2]), .write(.client, [3, 3, 3]),
    ]
    let updated = try conversation.record()
    let all = Self.records(updated)
    // The record with the update is missing.
    let clients = all.indices.filter { all[$0].side == .client }
    let arrivals: [Arrival] = all.indices.map { index in
      index == clients[clients.count - 3]
        ? .gap(.client, all[index].bytes.count) : .bytes(all[index].side, all[index].bytes)
    }
    let healed = StreamRun(arrivals, secrets: Secrets(keyLog: updated.keyLogText))
    #expect(healed.client.plaintext == [1, 2, 2, 3, 3, 3])
  }

  @Test("A handshake inside the connection may be missing in part", arguments: kinds.filter { $0.version != .tls13 })
  func aHandshakeInsideTheConnectionMayBeMissingIn(kind: LossTests.Kind) throws {
    var conversation = TLSConversation(version: kind.version, suite: kind.suite)
    conversation.usesEncryptThenMAC = kind.usesEncryptThenMAC
    conversation.insertsEmptyFragments = false
    conversation.script = [
      .write(.client, [1]), .renegotiate(.server), .write(.client, [2, 2]), .write(.client, [3, 3, 3]),
      .write(.client, [4, 4, 4, 4]),
    ]
    let recorded = try conversation.record()
    let records = Self.records(recorded)
    let data = records.indices.filter { records[$0].side == .client && records[$0].bytes[0] == 23 }
    // TLS 1.0 may need the record before, and puts an empty one before each of data.
    for missing in data[0] + 1..<data[data.count - 3]
    where records[missing].side == .client && !Self.looksClear(after: missing, in: records) {
      let arrivals: [Arrival] = records.indices.map { index in
        index == missing
          ? .gap(.client, records[index].bytes.count) : .bytes(records[index].side, records[index].bytes)
      }
      let run = StreamRun(arrivals, secrets: Secrets(keyLog: recorded.keyLogText))
      let name = Comment(rawValue: "record \(missing), type \(records[missing].bytes[0])")
      #expect(run.client.plaintext.filter { $0 == 4 } == [4, 4, 4, 4], name)
      #expect(run.client.plaintext.allSatisfy { (1...4).contains($0) }, name)
    }
  }

  @Test(
    "After a gap, a short record is clear only when it ends with a message",
    arguments: [
      // A ServerHelloDone; a certificate of 2 bytes before one; a hello request.
      ([14, 0, 0, 0], true), ([11, 0, 0, 2, 7, 7, 14, 0, 0, 0], true), ([0, 0, 0, 0], true),
      // Sealed ones that begin like a clear one.
      ([11, 0, 16, 0] + [UInt8](repeating: 9, count: 60), false), ([11, 0, 0, 2, 7, 7, 14, 0, 0], false),
      ([11, 0, 0, 2, 7, 7, 200, 0, 0, 0], false), ([20, 0, 0, 12] + [UInt8](repeating: 9, count: 12), false),
      ([14, 0, 0], false),
      // A long message goes on in the next record.
      ([11, 0, 16, 0] + [UInt8](repeating: 9, count: 507), false),
      ([11, 0, 16, 0] + [UInt8](repeating: 9, count: 508), true),
    ] as [([UInt8], Bool)]) func clearRecords(bytes: [UInt8], isClear: Bool)
  {
    let stream = TLSStream(secrets: Secrets(), limits: TLSLimits())
    #expect(stream.isClearHandshake(bytes.span.bytes) == isClear)
  }
}
