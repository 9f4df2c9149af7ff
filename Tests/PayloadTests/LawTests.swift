import Bytes
import Payload
import TestSupport
import Testing

@Suite("Laws of judging")
struct LawTests {
  /// Payloads of the vectors that are not long for being long.
  private static let vectors = RuleVector.all.filter { $0.payload.count <= 300 }
  /// Those that are JSON text in UTF-8 and nothing else.
  private static let valid = vectors.filter { JSONText.scan($0.payload.rawBytes) != .invalid }

  private static let sizes: PayloadRuleSet = [.payloadTooLarge, .payloadOver2048, .payloadOver256]

  @Test("No beginning of an object is valid, and all but faults of bytes are called truncated")
  func prefixes() {
    var judge = PayloadJudge()
    for vector in some(60, of: Self.valid) where vector.payload.first == UInt8(ascii: "{") {
      let payload = vector.payload
      let end = payload.lastIndex(of: UInt8(ascii: "}")) ?? 0
      for length in 0..<end {
        let prefix = Array(payload[..<length])
        let judgement = judge.judge(prefix.rawBytes, in: vector.environment)
        #expect(judgement.kind == .invalid)
        #expect(judgement.rules.hasErrors)
        let isWhole = String(validating: prefix, as: UTF8.self) != nil
        let expected: PayloadRule = length == 0 ? .payloadEmpty : isWhole ? .jsonTruncated : .payloadBadUTF8
        #expect(judgement.rules.contains(expected), "\(vector.id), \(length) bytes")
      }
    }
  }

  @Test("What a look takes for a plain alert is one, whatever byte is changed, in any environment")
  func plainAlerts() {
    let plain = Array(#"{"aps":{"alert":"The 7:40 ferry is late"}}"#.utf8)
    let bytes: [UInt8] = [0, 0x1f, 0x20, 0x21, 0x22, 0x2c, 0x5c, 0x7b, 0x7d, 0x7f, 0x80, 0xe9, 0xff]
    var payloads = [plain] + Self.vectors.map(\.payload)
    for place in plain.indices {
      for byte in bytes {
        var changed = plain
        changed[place] = byte
        payloads.append(changed)
      }
    }
    for length in 0...300 {
      payloads.append(Array("{\"aps\":{\"alert\":\"\(String(repeating: "x", count: length))\"}}".utf8))
    }
    let environments = [PayloadTopic.unknown, .app, .voip, .wallet].flatMap { topic in
      [(1, nil), (2, nil), (2, 5), (2, 7), (2, 10)].flatMap { (command: UInt8, priority: UInt8?) in
        [nil, 2009, 2014, 2021].map { era in
          PayloadEnvironment(era: era, topic: topic, frame: PushFrame(command: command, priority: priority))
        }
      }
    }
    var found = 0
    for payload in payloads {
      for environment in environments {
        guard let frame = environment.frame,
          PayloadJudge.isPlainAlert(
            payload.rawBytes, command: frame.command, priority: frame.priority, topic: environment.topic)
        else { continue }
        found += 1
        let judgement = judged(payload, in: environment)
        #expect(judgement.isClean && judgement.kind == .alert && judgement.effects == .alert)
      }
    }
    // The plain one, those with another letter, and 229 lengths, each in 3 topics, 3 frames and 4 years.
    #expect(found > 36 * 300)
  }

  @Test("White space between tokens changes no code but those of space and size")
  func whiteSpace() {
    for vector in Self.valid {
      let payload = vector.payload
      let spaced = judged(Self.spaced(payload), in: vector.environment)
      let plain = judged(payload, in: vector.environment)
      #expect(spaced.kind == plain.kind && spaced.effects == plain.effects)
      #expect(spaced.rules.contains(.payloadNotMinified))
      let apart = Self.sizes.union([.payloadNotMinified])
      #expect(spaced.rules.filter { !apart.contains($0) } == plain.rules.filter { !apart.contains($0) })
    }
  }

  /// The text with white space before and behind every bracket, comma and colon.
  private static func spaced(_ text: [UInt8]) -> [UInt8] {
    var (spaced, inString, isEscaped): ([UInt8], Bool, Bool) = ([], false, false)
    for byte in text {
      let isStructure = !inString && "{}[],:".utf8.contains(byte)
      if isStructure { spaced += " \n".utf8 }
      spaced.append(byte)
      if isStructure { spaced += "\r\t".utf8 }
      if byte == UInt8(ascii: "\""), !isEscaped { inString.toggle() }
      isEscaped = byte == UInt8(ascii: "\\") && !isEscaped
    }
    return [0x20] + spaced + [0x0a]
  }

  @Test("What is invalid has an error, and the judge agrees with the scanner, whatever byte is changed")
  func changes() {
    var judge = PayloadJudge()
    for vector in some(15, of: Self.vectors) {
      let payload = vector.payload
      for place in payload.indices {
        // Every byte in short ones only: a check takes microseconds, and in debug builds tens of them.
        let isWhole = TestRun.isWhole && payload.count <= 30
        for byte in isWhole ? Array(0...255) : Self.bytes(insteadOf: payload[place]) {
          var changed = payload
          changed[place] = byte
          check(changed, vector.environment, &judge)
        }
        var without = payload
        without.remove(at: place)
        check(without, vector.environment, &judge)
      }
    }
  }

  private static func bytes(insteadOf byte: UInt8) -> [UInt8] {
    [byte ^ 1, byte ^ 0x20, byte ^ 0x80, 0, 0xff] + Array("\"\\{}[],:'0e \u{1}".utf8)
  }

  private func check(_ payload: [UInt8], _ environment: PayloadEnvironment, _ judge: inout PayloadJudge) {
    let judgement = judge.judge(payload.rawBytes, in: environment, findsPlaces: true)
    #expect(judgement.kind != .invalid || judgement.rules.hasErrors)
    #expect(PayloadRuleSet(judgement.findings.map(\.rule)) == judgement.rules)
    let places = judgement.findings.map { $0.offset ?? -1 }
    #expect(places == places.sorted())
    for finding in judgement.findings { #expect((0...payload.count).contains(finding.offset ?? 0)) }
    var tape = JSONTape()
    let isValid = JSONText.scan(payload.rawBytes) != .invalid
    #expect((tape.read(payload.rawBytes) == nil) == isValid)
    // Bytes that are taken off or converted first are another text.
    if !isValid, judgement.rules.isDisjoint(with: [.payloadNulTerminated, .payloadBOM, .payloadUTF16]) {
      #expect(judgement.kind == .invalid)
    }
    // One system for each payload, all of them in turn.
    let system = SystemVersion.allCases[(payload.count + Int(payload.last ?? 0)) % SystemVersion.allCases.count]
    let shown = PayloadRendering(of: payload.rawBytes, on: system, language: "en", resources: AppResources())
    let isNotShown = shown.body == nil && shown.title == nil && shown.badge == nil && shown.sound == nil
    #expect(isNotShown == (shown.notes.contains(.nothingShown) || shown.notes == [.invalid]))
    #expect(shown.notes.contains(.invalid) == (judgement.kind == .invalid))
  }

  @Test("The order of members changes no code")
  func order() {
    let members = [
      #""alert":{"loc-args":["x"],"body":"y"}"#, #""badge":-1"#, #""sound":"x.mp3""#, #""content-available":true"#,
      #""harbour":1"#, #""thread_id":"z""#,
    ]
    let expected = judged("{\"aps\":{\(members.joined(separator: ","))},\"x\":null}")
    var random = SeededGenerator(seed: 4)
    for _ in 0..<50 {
      let shuffled = members.shuffled(using: &random).joined(separator: ",")
      #expect(judged("{\"x\":null,\"aps\":{\(shuffled)}}").rules == expected.rules)
    }
  }
}

extension PayloadRuleSet {
  fileprivate func isDisjoint(with rules: [PayloadRule]) -> Bool { !rules.contains { contains($0) } }
}
