import TLSDecryption
import TestSupport
import Testing

/// Every version, suite and feature that libssl still speaks, decrypted to the last byte.
@Suite struct MatrixTests {
  /// A conversation to be made.
  struct Cell: CustomTestStringConvertible, Sendable {
    var name: String
    var conversation: TLSConversation
    var testDescription: String { name }
  }

  static let oldSuites = [
    "AES128-SHA", "AES256-SHA", "DHE-RSA-AES128-SHA", "ECDHE-RSA-AES256-SHA", "CAMELLIA128-SHA", "CAMELLIA256-SHA",
    "DHE-RSA-CAMELLIA256-SHA",
  ]
  static let newSuites = [
    "AES128-SHA256", "AES256-SHA256", "ECDHE-RSA-AES128-SHA256", "ECDHE-RSA-AES256-SHA384", "AES128-GCM-SHA256",
    "AES256-GCM-SHA384", "DHE-RSA-AES128-GCM-SHA256", "ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-RSA-AES256-GCM-SHA384",
    "AES128-CCM", "AES256-CCM", "AES128-CCM8", "AES256-CCM8", "DHE-RSA-AES256-CCM8", "ECDHE-RSA-CHACHA20-POLY1305",
    "DHE-RSA-CHACHA20-POLY1305", "CAMELLIA128-SHA256", "CAMELLIA256-SHA256", "ECDHE-RSA-CAMELLIA256-SHA384",
    "ARIA128-GCM-SHA256", "ARIA256-GCM-SHA384", "ECDHE-ARIA256-GCM-SHA384",
  ]
  static let keySuites = [
    "PSK-AES128-CBC-SHA", "PSK-AES256-GCM-SHA384", "DHE-PSK-AES128-GCM-SHA256", "ECDHE-PSK-CHACHA20-POLY1305",
    "PSK-AES128-CCM8", "RSA-PSK-AES128-CBC-SHA256",
  ]
  static let modernSuites = [
    "TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_CCM_SHA256",
    "TLS_AES_128_CCM_8_SHA256",
  ]

  static let suites: [Cell] = {
    var cells: [Cell] = []
    for version in [TLSConversation.Version.tls10, .tls11, .tls12] {
      for suite in oldSuites {
        for (ems, etm) in [(true, true), (false, true), (true, false), (false, false)] {
          var conversation = TLSConversation(version: version, suite: suite)
          conversation.usesExtendedMasterSecret = ems
          conversation.usesEncryptThenMAC = etm
          cells.append(
            Cell(name: "\(version) \(suite)\(ems ? " EMS" : "")\(etm ? " EtM" : "")", conversation: conversation))
        }
      }
    }
    for suite in newSuites {
      cells.append(Cell(name: "tls12 \(suite)", conversation: TLSConversation(version: .tls12, suite: suite)))
    }
    for suite in keySuites {
      var conversation = TLSConversation(version: .tls12, suite: suite)
      conversation.preSharedKey = TLSConversation.PreSharedKey()
      cells.append(Cell(name: "tls12 \(suite)", conversation: conversation))
    }
    for suite in modernSuites {
      cells.append(Cell(name: "tls13 \(suite)", conversation: TLSConversation(version: .tls13, suite: suite)))
    }
    for suite in ["ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES256-CCM8", "ECDHE-ECDSA-AES128-SHA"] {
      var conversation = TLSConversation(version: .tls12, suite: suite)
      conversation.serverKey = .ec
      cells.append(Cell(name: "tls12 \(suite)", conversation: conversation))
    }
    return cells
  }()

  static let features: [Cell] = {
    var cells: [Cell] = []
    func add(
      _ name: String, _ versions: [(TLSConversation.Version, String?)], _ change: (inout TLSConversation) -> Void
    ) {
      for (version, suite) in versions {
        var conversation = TLSConversation(version: version, suite: suite)
        change(&conversation)
        cells.append(Cell(name: "\(version) \(suite ?? "default") \(name)", conversation: conversation))
      }
    }
    let all: [(TLSConversation.Version, String?)] = [
      (.tls10, "AES128-SHA"), (.tls11, "AES128-SHA"), (.tls12, "AES128-SHA256"),
      (.tls12, "ECDHE-RSA-AES128-GCM-SHA256"),
      (.tls13, nil),
    ]
    add("mutual authentication", all) { $0.clientAuthentication = .given }
    add("fragmented handshake", all) {
      $0.maxFragment = 512
      $0.clientAuthentication = .given
    }
    add("no empty fragments", [(.tls10, "AES128-SHA")]) { $0.insertsEmptyFragments = false }
    add("server renegotiates", all.dropLast()) {
      $0.script = [.write(.client, [1, 2, 3]), .renegotiate(.server), .write(.client, [4, 5]), .write(.server, [6])]
    }
    add("client renegotiates twice", all.dropLast()) {
      $0.allowsClientRenegotiation = true
      $0.script = [
        .write(.client, [1, 2, 3]), .renegotiate(.client), .write(.client, [4, 5]),
        .renegotiate(.client, abbreviated: true),
        .write(.server, [6]), .write(.client, Array(0...255)),
      ]
    }
    add("key updates", [(.tls13, nil), (.tls13, "TLS_AES_256_GCM_SHA384"), (.tls13, "TLS_CHACHA20_POLY1305_SHA256")]) {
      $0.script = [
        .write(.client, [1]), .updateKey(.client, asksPeer: false), .write(.client, [2]), .write(.server, [3]),
        .updateKey(.server, asksPeer: true), .write(.client, [4]), .write(.server, [5]),
        .updateKey(.client, asksPeer: true), .updateKey(.client, asksPeer: false), .write(.client, [6, 7]),
        .write(.server, [8, 9]), .close(.client), .close(.server),
      ]
    }
    add("another key share", [(.tls13, nil)]) { $0.asksForAnotherKeyShare = true }
    add("no compatibility messages", [(.tls13, nil)]) { $0.usesMiddleboxCompatibility = false }
    add("padding", [(.tls13, nil)]) { $0.paddingBlock = 512 }
    add("external PSK", [(.tls13, "TLS_AES_128_GCM_SHA256")]) { $0.preSharedKey = TLSConversation.PreSharedKey() }
    add("no tickets", all) { $0.usesTickets = false }
    add("half closed", all) {
      $0.script = [.write(.client, [1]), .close(.client), .write(.server, [2]), .close(.server)]
    }
    return cells
  }()

  static let all = suites + features
  /// Byte by byte takes longest: which of the cells come so.
  static let dripped = Set(some(25, of: all.map(\.name)))

  @Test("Every byte of both sides is given out, in any pieces", arguments: all)
  func everyByteOfBothSidesIsGivenOutInAnyPieces(cell: Cell) throws {
    let recorded = try cell.conversation.record()
    for pieceLength in [Int.max, 1_448] + (Self.dripped.contains(cell.name) ? [1] : []) {
      let run = StreamRun(recorded, pieceLength: pieceLength)
      for side in RecordedConversation.Side.allCases {
        #expect(run.output(side).plaintext == recorded.plaintext(of: side))
        #expect(run.output(side).gaps.isEmpty)
        #expect(run.output(side).wrongOffsets == 0)
        #expect(run.output(side).ends == 1)
      }
      #expect(run.summary.problem == nil)
      #expect(run.summary.isDecrypted)
      #expect(run.summary.version?.rawValue == recorded.version)
      #expect(run.summary.suite?.code == recorded.suite)
      // A key agreed on beforehand looks like a session's.
      let hasOwnKey = cell.conversation.preSharedKey != nil && cell.conversation.version == .tls13
      #expect(run.summary.isResumed == hasOwnKey)
      #expect(run.summary.alert == nil)
      if cell.conversation.clientAuthentication == .given {
        #expect(run.summary.clientSubject == "UID=com.example.app,CN=Apple Push Services: com.example.app")
      }
    }
  }

  @Test("The secrets that were used suffice", arguments: some(50, of: all)) func theSecretsThatWereUsedSuffice(
    cell: Cell
  ) throws {
    let recorded = try cell.conversation.record()
    let exported = StreamRun(recorded).exportedKeys
    #expect(Set(exported).count == exported.count)
    let again = StreamRun(recorded.arrivals, secrets: Secrets(keyLog: exported.joined()))
    #expect(again.client.plaintext == recorded.clientPlaintext)
    #expect(again.server.plaintext == recorded.serverPlaintext)
  }

  @Test("Captures record one side's packets long before the other's", arguments: some(50, of: all))
  func capturesRecordOneSidePacketsLongBeforeThe(cell: Cell) throws {
    let recorded = try cell.conversation.record()
    for first in RecordedConversation.Side.allCases {
      let arrivals: [Arrival] = [
        .bytes(first, recorded.stream(of: first)), .bytes(first.peer, recorded.stream(of: first.peer)),
      ]
      let run = StreamRun(arrivals, secrets: Secrets(keyLog: recorded.keyLogText), pieceLength: 1_000)
      #expect(run.client.plaintext == recorded.clientPlaintext)
      #expect(run.server.plaintext == recorded.serverPlaintext)
    }
  }

  @Test("Without the connection's secrets nothing is given out, and the reason is", arguments: some(50, of: all))
  func withoutTheConnectionSecretsNothingIsGivenOut(cell: Cell)
    throws
  {
    let recorded = try cell.conversation.record()
    let other = try cell.conversation.record()
    let run = StreamRun(recorded.arrivals, secrets: Secrets(keyLog: other.keyLogText))
    #expect(run.client.plaintext.isEmpty)
    #expect(run.server.plaintext.isEmpty)
    #expect(!run.summary.isDecrypted)
    #expect(run.summary.problem?.contains("is not in the key log") == true, "\(run.summary.problem ?? "no problem")")
    let none = StreamRun(recorded.arrivals, secrets: Secrets())
    #expect(none.summary.problem == "no key log or server key was given")
    #expect(none.summary.suite?.code == recorded.suite)
  }
}
