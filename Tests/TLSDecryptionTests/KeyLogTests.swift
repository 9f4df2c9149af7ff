import Bytes
import Foundation
import TestSupport
import Testing

@testable import TLSDecryption

/// NSS key logs: what is found in them, and what does not harm.
@Suite struct KeyLogTests {
  private let random = [UInt8](0x40..<0x60)
  private let master = [UInt8](0x80..<0xb0)
  private let traffic = [UInt8](0xc0..<0xe0)

  private var line: String { "CLIENT_RANDOM \(text(random)) \(text(master))" }

  private func keyLog(_ text: String, maximumLines: Int = 1_000) -> KeyLog {
    KeyLog(Array(text.utf8), maximumLines: maximumLines)
  }

  private func found(_ text: String) -> [[UInt8]] {
    keyLog(text).secrets(.clientRandom, for: random, limit: 100)
  }

  // MARK: labels

  @Test(
    "Each label's secret is found under its client random, and under no other label",
    arguments: [
      (KeyLogLabel.clientRandom, "CLIENT_RANDOM", 48), (.premaster, "PMS_CLIENT_RANDOM", 66),
      (.clientEarlyTraffic, "CLIENT_EARLY_TRAFFIC_SECRET", 32),
      (.clientHandshakeTraffic, "CLIENT_HANDSHAKE_TRAFFIC_SECRET", 48),
      (.serverHandshakeTraffic, "SERVER_HANDSHAKE_TRAFFIC_SECRET", 32),
      (.clientTraffic, "CLIENT_TRAFFIC_SECRET_0", 48), (.serverTraffic, "SERVER_TRAFFIC_SECRET_0", 64),
    ])
  func eachLabelSecretIsFoundUnderItsClientRandom(
    label: KeyLogLabel, name: String, length: Int
  ) {
    let secret = [UInt8](repeating: 5, count: length)
    let keyLog = keyLog("\(name) \(text(random)) \(text(secret))\n")
    #expect(keyLog.count == 1)
    for other in KeyLogLabel.allCases {
      #expect(keyLog.secrets(other, for: random, limit: 10) == (other == label ? [secret] : []))
    }
    #expect(keyLog.secrets(label, for: random.reversed(), limit: 10).isEmpty)
    let line = KeyLogLine(label, key: random, secret: secret)
    #expect(line.text == "\(name) \(text(random)) \(text(secret))\n")
  }

  @Test("Premaster secrets are found by the first eight bytes they were encrypted to")
  func premasterSecretsAreFoundByTheFirstEightBytes() {
    let key = Array(random.prefix(8))
    let keyLog = keyLog("RSA \(text(key)) \(text(master))\n")
    #expect(keyLog.secrets(.rsa, for: key, limit: 10) == [master])
    #expect(keyLog.secrets(.sessionID, for: key, limit: 10).isEmpty)
    #expect(KeyLogLine(.rsa, key: key, secret: master).text == "RSA \(text(key)) \(text(master))\n")
  }

  /// As `openssl s_client` prints a session, in one line; session ids have up to 32 bytes.
  @Test("Master secrets are found by their session's id", arguments: [1, 16, 32])
  func masterSecretsAreFoundByTheirSessionId(length: Int) {
    let identifier = Array(random.prefix(length))
    let line = "RSA Session-ID:\(text(identifier)) Master-Key:\(text(master))\n"
    let keyLog = keyLog(line.replacing("ab", with: "AB"))
    #expect(keyLog.secrets(.sessionID, for: identifier, limit: 10) == [master])
    #expect(keyLog.secrets(.rsa, for: Array(identifier.prefix(8)), limit: 10).isEmpty)
    #expect(KeyLogLine(.sessionID, key: identifier, secret: master).text == line)
  }

  // MARK: forms

  @Test("Comments, blank lines and other labels are passed over") func commentsBlankLinesAndOtherLabelsArePassed() {
    let log = """
      # a comment
      #\(line)

      EXPORTER_SECRET \(text(random)) \(text(traffic))
      CLIENT_TRAFFIC_SECRET_1 \(text(random)) \(text(traffic))
      SERVER_TRAFFIC_SECRET_N \(text(random)) \(text(traffic))
      ECH_SECRET \(text(random)) \(text(traffic))
      client_random \(text(random)) \(text(traffic))
      \(line)
      \u{20}
      """
    #expect(keyLog(log).count == 1)
    #expect(found(log) == [master])
  }

  @Test("Lines end with a line feed, with carriage return and line feed, or with the file")
  func linesEndWithALineFeedWithCarriageReturnAnd() {
    for end in ["\n", "\r\n", "", "\r", " \n", "\t\r\n"] {
      #expect(found(line + end) == [master], "\(end.debugDescription)")
    }
    #expect(found("# first\r\n\r\n\(line)\r\n# last\r\n") == [master])
  }

  @Test("Digits in upper case are digits") func digitsInUpperCaseAreDigits() {
    #expect(found("CLIENT_RANDOM \(text(random).uppercased()) \(text(master).uppercased())\n") == [master])
  }

  @Test("Blanks before the label and between the fields do not matter")
  func blanksBeforeTheLabelAndBetweenTheFieldsDoNot() {
    #expect(found("  \t \(line)\n") == [master])
    #expect(found("CLIENT_RANDOM   \(text(random))    \(text(master))\n") == [master])
  }

  @Test("A secret of zeros is a secret") func aSecretOfZerosIsASecret() {
    let zeros = [UInt8](repeating: 0, count: 48)
    #expect(found("CLIENT_RANDOM \(text(random)) \(text(zeros))\n") == [zeros])
    let keyLog = keyLog("CLIENT_RANDOM \(text([UInt8](repeating: 0, count: 32))) \(text(master))\n")
    #expect(keyLog.secrets(.clientRandom, for: [UInt8](repeating: 0, count: 32), limit: 1) == [master])
  }

  // MARK: damage

  /// `R` stands for the client random's digits, `S` for those of another secret, `r` and `s` for them without the last.
  @Test(
    "Damaged lines give nothing and hide nothing",
    arguments: [
      "CLIENT_RANDOM", "CLIENT_RANDOM ", "CLIENT_RANDOM R", "CLIENT_RANDOM R ", "CLIENT_RANDOM R s",
      "CLIENT_RANDOM R S0", "CLIENT_RANDOM R S00", "CLIENT_RANDOM R Sxx", "CLIENT_RANDOM R S 00",
      "CLIENT_RANDOM R S S", "CLIENT_RANDOM R S # comment", "CLIENT_RANDOM R00 S", "CLIENT_RANDOM r S",
      "CLIENT_RANDOM r0 s", "CLIENT_RANDOM RS", "CLIENT_RANDOM R\tS", "CLIENT_RANDOM R-S", "CLIENT_RANDOM R,S",
      "CLIENT_RANDOM S R", "R S", "CLIENT_RANDOM:R S", "xCLIENT_RANDOM R S", "CLIENT_RANDO R S", "CLIENT_RANDOMR S",
      "CLIENT_RANDOM \u{fffd}R S", "CLIENT_RANDOM R \u{0}S", "CLIENT_RANDOM R S\u{0}", "CLIENT_RANDOM 0xR 0xS",
      "CLIENT_RANDOM \"R\" S",
    ])
  func damagedLinesGiveNothingAndHideNothing(pattern: String) {
    let other = text([UInt8](repeating: 0x11, count: 48))
    let label = pattern.contains("CLIENT_RANDO") ? pattern.firstRange(of: "CLIENT_RANDOM")?.upperBound : nil
    let start = label ?? pattern.firstRange(of: "CLIENT_RANDO")?.upperBound ?? pattern.startIndex
    var damaged = String(pattern[..<start])
    for character in pattern[start...] {
      switch character {
      case "R": damaged += text(random)
      case "r": damaged += text(random).dropLast()
      case "S": damaged += other
      case "s": damaged += other.dropLast()
      default: damaged.append(character)
      }
    }
    #expect(found(damaged + "\n") == [], "\(damaged)")
    #expect(found("\(damaged)\n\(line)\n") == [master])
    #expect(found("\(line)\n\(damaged)") == [master])
  }

  @Test("Any cut of a line gives nothing") func anyCutOfALineGivesNothing() {
    for length in 0..<line.utf8.count { #expect(found(String(line.prefix(length))) == [], "\(length) characters") }
  }

  @Test("Secrets of a length that their label never has are damage") func secretsOfALengthThatTheirLabelNeverHasAre() {
    for length in [0, 16, 31, 33, 47, 49, 64, 65] {
      let secret = text([UInt8](repeating: 1, count: length))
      #expect(found("CLIENT_RANDOM \(text(random)) \(secret)\n") == [])
      let traffic = keyLog("CLIENT_TRAFFIC_SECRET_0 \(text(random)) \(secret)\n")
        .secrets(.clientTraffic, for: random, limit: 1)
      #expect(traffic.isEmpty == !(32...64).contains(length), "\(length) bytes")
    }
  }

  @Test("Bytes that are no text give nothing") func bytesThatAreNoTextGiveNothing() {
    var generator = SeededGenerator(seed: 8)
    for _ in 0..<100 {
      let keyLog = KeyLog(generator.bytes(5_000), maximumLines: 1_000)
      for label in KeyLogLabel.allCases { keyLog.forEach(label) { _ in true } }
      #expect(keyLog.secrets(.clientRandom, for: random, limit: 1).isEmpty)
    }
  }

  // MARK: several lines

  @Test("The last line for a key comes first, and each secret once") func theLastLineForAKeyComesFirstAndEachSecret() {
    let secrets = (1...4).map { [UInt8](repeating: $0, count: 48) }
    let log = [0, 1, 0, 2, 1, 3, 2].map { "CLIENT_RANDOM \(text(random)) \(text(secrets[$0]))\n" }.joined()
    #expect(keyLog(log).count == 7)
    #expect(found(log) == [secrets[2], secrets[3], secrets[1], secrets[0]])
    #expect(keyLog(log).secrets(.clientRandom, for: random, limit: 2) == [secrets[2], secrets[3]])
  }

  @Test("Keys that differ behind the part that is indexed are told apart")
  func keysThatDifferBehindThePartThatIsIndexedAre() {
    // The index knows 20 bits of a hash over 16 bytes.
    var other = random
    other[31] ^= 1
    let log = "\(line)\nCLIENT_RANDOM \(text(other)) \(text(traffic + traffic.prefix(16)))\n"
    #expect(found(log) == [master])
    #expect(keyLog(log).secrets(.clientRandom, for: other, limit: 9) == [traffic + traffic.prefix(16)])
  }

  @Test("Among many lines each key finds its own") func amongManyLinesEachKeyFindsItsOwn() {
    var generator = SeededGenerator(seed: 3)
    let lines = (0..<3_000).map { _ in (random: generator.bytes(32), secret: generator.bytes(48)) }
    let log = lines.map { "CLIENT_RANDOM \(text($0.random)) \(text($0.secret))\n" }.joined()
    let keyLog = keyLog(log, maximumLines: 5_000)
    #expect(keyLog.count == 3_000 && !keyLog.isCut)
    for line in lines { #expect(keyLog.secrets(.clientRandom, for: line.random, limit: 9) == [line.secret]) }
    var seen = 0
    keyLog.forEach(.clientRandom) { _ in
      seen += 1
      return seen < 100
    }
    #expect(seen == 100)
  }

  @Test("Lines beyond the limit are not used, and that is said") func linesBeyondTheLimitAreNotUsedAndThatIsSaid() {
    let lines = (0..<5).map { "CLIENT_RANDOM \(text([UInt8](repeating: UInt8($0), count: 32))) \(text(master))\n" }
    let cut = keyLog("# comments do not count\n" + lines.joined(), maximumLines: 3)
    #expect(cut.count == 3 && cut.isCut)
    #expect(cut.secrets(.clientRandom, for: [UInt8](repeating: 2, count: 32), limit: 1) == [master])
    #expect(cut.secrets(.clientRandom, for: [UInt8](repeating: 3, count: 32), limit: 1).isEmpty)
    let whole = keyLog(lines.joined() + "# and nothing after\n", maximumLines: 5)
    #expect(whole.count == 5 && !whole.isCut)
  }

  // MARK: files

  @Test("A file is read again when its secrets are wanted") func aFileIsReadAgainWhenItsSecretsAreWanted() throws {
    try withFile(Array("# comment\n\(line)\r\n".utf8)) { path in
      let keyLog = try KeyLog(contentsOf: path, maximumLength: 0, maximumLines: 10)
      #expect(keyLog.count == 1 && !keyLog.isCut)
      #expect(keyLog.secrets(.clientRandom, for: random, limit: 10) == [master])
      // It stays open: a key log may be deleted.
      try FileManager.default.removeItem(atPath: path)
      #expect(keyLog.secrets(.clientRandom, for: random, limit: 10) == [master])
    }
  }

  /// Files are read in blocks of 1 MiB.
  @Test("A line may cross the border of blocks", arguments: [-100, -13, -1, 0]) func aLineMayCrossTheBorderOfBlocks(
    place: Int
  ) throws {
    let filler = String(repeating: "#" + String(repeating: "x", count: 62) + "\n", count: 1 << 14)
    let start = (1 << 20) + place
    let before = filler.prefix(start - 64) + "#" + String(repeating: "y", count: 62) + "\n"
    try #require(before.utf8.count == start)
    for suffix in ["", "\r\n# more\n"] {
      try withFile(Array((before + line + suffix).utf8)) { path in
        let keyLog = try KeyLog(contentsOf: path, maximumLength: 0, maximumLines: 10)
        #expect(keyLog.count == 1)
        #expect(keyLog.secrets(.clientRandom, for: random, limit: 10) == [master])
      }
    }
  }

  @Test("Lines before and behind an endless one are found") func linesBeforeAndBehindAnEndlessOneAreFound() throws {
    try withTemporaryFolder { folder in
      let path = folder.appendingPathComponent("log").path
      // Zeros, which take no room on disk.
      #expect(FileManager.default.createFile(atPath: path, contents: Data("\(line)\n".utf8)))
      let file = try FileHandle(forWritingTo: URL(filePath: path))
      try file.truncate(atOffset: 4 << 20)
      try file.seekToEnd()
      try file.write(contentsOf: Data("\n\(line.dropLast(2))00\n".utf8))
      try file.close()
      let keyLog = try KeyLog(contentsOf: path, maximumLength: 0, maximumLines: 10)
      #expect(keyLog.count == 2)
      #expect(keyLog.secrets(.clientRandom, for: random, limit: 10).count == 2)
    }
  }

  @Test("The tail of an endless line is no line") func theTailOfAnEndlessLineIsNoLine() throws {
    let endless = String(repeating: "x", count: 1 << 20) + line
    #expect(found("\(endless)\n") == [])
    try withFile(Array("\(endless)\n".utf8)) { path in
      let keyLog = try KeyLog(contentsOf: path, maximumLength: 0, maximumLines: 10)
      #expect(keyLog.count == 0)
    }
  }

  @Test("A pipe is a key log") func aPipeIsAKeyLog() throws {
    let reader = try fromPipe(Array("# comment\n\(line)\n".utf8), maximumLength: 1 << 20)
    let keyLog = try reader.get()
    #expect(keyLog.count == 1)
    #expect(keyLog.secrets(.clientRandom, for: random, limit: 10) == [master])
  }

  @Test("A pipe that brings more than the limit is refused") func aPipeThatBringsMoreThanTheLimitIsRefused() throws {
    let reader = try fromPipe([UInt8](repeating: 0x23, count: 5_000), maximumLength: 4_999)
    #expect(throws: SecretsError("is not a plain file and holds more than 4999 bytes")) { try reader.get() }
    let whole = try fromPipe([UInt8](repeating: 0x23, count: 5_000), maximumLength: 5_000).get()
    #expect(whole.count == 0)
  }

  @Test("A file that is missing, and a folder, say so") func aFileThatIsMissingAndAFolderSaySo() throws {
    #expect(throws: SecretsError("No such file or directory", kind: .cannotOpen)) {
      try KeyLog(contentsOf: "/nonexistent/keys", maximumLength: 0, maximumLines: 1)
    }
    #expect(throws: SecretsError("Is a directory", kind: .readFailed)) {
      try KeyLog(contentsOf: "/tmp", maximumLength: 0, maximumLines: 1)
    }
  }

  @Test("An empty file holds nothing") func anEmptyFileHoldsNothing() throws {
    try withFile([]) { path in
      let keyLog = try KeyLog(contentsOf: path, maximumLength: 0, maximumLines: 1)
      #expect(keyLog.count == 0)
    }
  }

  // MARK: tools

  private func fromPipe(_ bytes: [UInt8], maximumLength: Int) throws -> Result<KeyLog, any Error> {
    try withTemporaryFolder { folder in
      let path = folder.appendingPathComponent("pipe").path
      // Safe: the path is a string of its own for the call.
      try #require(unsafe mkfifo(path, 0o600) == 0)
      let writer = Thread {
        // Opens when the reader does; writes less than a pipe holds.
        try? FileHandle(forWritingTo: URL(filePath: path)).write(contentsOf: Data(bytes))
      }
      writer.start()
      return Result { try KeyLog(contentsOf: path, maximumLength: maximumLength, maximumLines: 10) }
    }
  }
}

/// Secrets in other forms than a key log in UTF-8.
@Suite("Pasted secrets")
struct PastedSecretsTests {
  private let random = [UInt8](0x40..<0x60)
  private let master = [UInt8](0x80..<0xb0)

  private func read(_ bytes: [UInt8]) throws -> KeyLog {
    try withFile(bytes) { try KeyLog(contentsOf: $0, maximumLength: 1 << 20, maximumLines: 100) }
  }

  private func utf16(_ text: String, bigEndian: Bool, mark: Bool) -> [UInt8] {
    ((mark ? [0xfeff] : []) + Array(text.utf16)).flatMap { unit in
      let (high, low) = (UInt8(unit >> 8), UInt8(unit & 0xff))
      return bigEndian ? [high, low] : [low, high]
    }
  }

  @Test("A key log in UTF-16 is read, in either order", arguments: [false, true], [false, true])
  func utf16(bigEndian: Bool, mark: Bool) throws {
    let line = "# keys\r\nCLIENT_RANDOM \(text(random)) \(text(master))\r\n"
    let keyLog = try read(utf16(line, bigEndian: bigEndian, mark: mark))
    #expect(keyLog.count == 1 && !keyLog.isOfSessions)
    #expect(keyLog.secrets(.clientRandom, for: random, limit: 10) == [master])
  }

  @Test(
    "The session that openssl s_client prints is found by its identifier, in any encoding", arguments: [false, true])
  func session(isUTF16: Bool) throws {
    let session = """
      SSL-Session:
          Protocol  : TLSv1.2
          Cipher    : ECDHE-RSA-AES256-GCM-SHA384
          Session-ID: \(text(random).uppercased())
          Session-ID-ctx:
          Master-Key: \(text(master).uppercased())
          PSK identity: None

      """
    let keyLog = try read(isUTF16 ? utf16(session, bigEndian: false, mark: true) : Array(session.utf8))
    #expect(keyLog.count == 1 && keyLog.isOfSessions)
    #expect(keyLog.secrets(.sessionID, for: random, limit: 10) == [master])
    let secrets = Secrets()
    secrets.add(keyLog)
    #expect(secrets.masters == [master])
  }

  @Test("A session with a ticket has a secret, too, and a key log's lines are for their connections only")
  func ticket() throws {
    let keyLog = try read(Array("Session-ID: \nMaster-Key: \(text(master))\n".utf8))
    #expect(keyLog.count == 1 && keyLog.isOfSessions)
    #expect(try read(Array("Session-ID: 00\nMaster-Key: 0011\n".utf8)).count == 0)
    let lines = try read(Array("RSA Session-ID:\(text(random)) Master-Key:\(text(master))\n".utf8))
    #expect(lines.count == 1 && !lines.isOfSessions)
  }
}
