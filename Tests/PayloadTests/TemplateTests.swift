import Bytes
import TestSupport
import Testing

@testable import Payload

@Suite("Payloads that are made of one template")
struct TemplateTests {
  private static func template(_ payload: [UInt8]) -> PayloadTemplate? {
    var judge = PayloadJudge()
    _ = judge.judge(payload.rawBytes)
    return judge.template(ofLast: payload.rawBytes)
  }

  private static func matches(_ template: String, _ payload: String) -> Bool {
    self.template(Array(template.utf8))?.matches(Array(payload.utf8).rawBytes) ?? false
  }

  // MARK: the law

  /// Payloads of every kind and with every fault.
  private static let payloads: [[UInt8]] = {
    let samples = PayloadSamples(seed: 3)
    var payloads: [[UInt8]] = []
    for kind in PayloadKind.allCases {
      for number in 0..<12 as Range<UInt64> { payloads.append(samples.payload(kind, number: number)) }
    }
    for rule in PayloadRule.allCases { payloads.append(FaultyPush(breaking: rule, seed: 4).payload) }
    payloads += RuleVector.all.map(\.payload)
    return payloads.filter { (1..<400).contains($0.count) }
  }()

  private static let environments = [
    PayloadTopic.unknown, .app, .newsstand, .voip, .wallet, .web, .management, .complication,
  ].flatMap { topic in
    [(0, nil), (2, nil), (2, 5), (2, 10)].flatMap { (command: UInt8, priority: UInt8?) in
      [nil, 2009, 2012, 2014, 2016, 2021].map { era in
        PayloadEnvironment(era: era, topic: topic, frame: PushFrame(command: command, priority: priority))
      }
    }
  }

  /// The payload with each byte replaced, removed, and with texts put before it.
  private static func variants(of payload: [UInt8]) -> [[UInt8]] {
    let bytes: [UInt8] = [0, 0x1f, 0x20, 0x26, 0x22, 0x2c, 0x30, 0x37, 0x5c, 0x61, 0x7b, 0x7f, 0x80, 0xe9, 0xee]
    let texts = [
      "é", "&amp;", "{\"a\":1}", " {}", "\u{a0}{}", "\u{e415}", "\\u00e9", "\\\\ud83d", "00", "12", "-", ".5", "e3",
      "\",\"x\":null,\"y\":\"", "},\"badge\":{", String(repeating: "long ", count: 60),
    ]
    var variants: [[UInt8]] = []
    for place in payload.indices {
      let (before, after) = (Array(payload[..<place]), Array(payload[(place + 1)...]))
      variants += bytes.map { before + [$0] + after }
      variants.append(before + after)
      variants += texts.map { before + Array($0.utf8) + [payload[place]] + after }
    }
    return variants
  }

  @Test("What a template matches is judged as the payload that it was found in, in any environment")
  func law() {
    var judge = PayloadJudge()
    var matched = 0
    let all = Self.payloads
    for payload in some(25, of: all) {
      guard let template = Self.template(payload) else { continue }
      let matchesItself = template.matches(payload.rawBytes)
      #expect(matchesItself)
      let expected = Self.environments.map { judge.judge(payload.rawBytes, in: $0) }
      for other in all + Self.variants(of: payload) where template.matches(other.rawBytes) {
        // Some for each, all of them in turn.
        for step in 0..<3 {
          let index = (matched * 3 + step) % Self.environments.count
          let judgement = judge.judge(other.rawBytes, in: Self.environments[index])
          #expect(
            judgement.rules == expected[index].rules && judgement.kind == expected[index].kind
              && judgement.effects == expected[index].effects,
            "\(String(decoding: payload, as: UTF8.self)) and \(String(decoding: other, as: UTF8.self))")
        }
        matched += 1
      }
    }
    #expect(matched > 2_000)
  }

  @Test("Environments in which payloads may be judged otherwise have different numbers")
  func environments() {
    let topics = [PayloadTopic.unknown, .app, .newsstand, .voip, .wallet, .web, .management, .complication]
    var numbers: Set<UInt64> = []
    var count = 0
    for era in [nil] + Array(2009...2040) as [Int?] {
      for topic in topics {
        let seed = JudgementTable.seed(era: era, topic: topic)
        numbers.insert(JudgementTable.environment(command: 1, priority: nil, seed: seed))
        for priority in [nil] + Array(0...255) as [UInt8?] {
          numbers.insert(JudgementTable.environment(command: 2, priority: priority, seed: seed))
        }
        count += 258
      }
    }
    #expect(numbers.count == count)
  }

  // MARK: examples

  @Test(
    "Texts, arguments, numbers and the app's own strings vary",
    arguments: [
      (#"{"aps":{"alert":"Gate 4"}}"#, #"{"aps":{"alert":"Ворота 12 открыты"}}"#),
      (
        #"{"aps":{"alert":{"title":"A","body":"B"},"badge":3,"sound":"default"}}"#,
        #"{"aps":{"alert":{"title":"Löwe","body":"C, D: E"},"badge":12,"sound":"default"}}"#
      ),
      (
        #"{"aps":{"alert":{"loc-key":"K","loc-args":["Ada","7"]}}}"#,
        #"{"aps":{"alert":{"loc-key":"K","loc-args":["Bo","12"]}}}"#
      ),
      (
        #"{"aps":{"content-available":1},"rev":7,"of":{"id":"a","tags":["b",0]}}"#,
        #"{"aps":{"content-available":1},"rev":123456,"of":{"id":"","tags":["{&",9]}}"#
      ),
      (#"{"aps":{"badge":1,"thread-id":"a"}}"#, #"{"aps":{"badge":0,"thread-id":"a long one"}}"#),
      (#"{"aps":{"alert":"x","url-args":["a"]}}"#, #"{"aps":{"alert":"y","url-args":["b/c"]}}"#),
      (#"{"aps":{},"call":"c-1"}"#, #"{"aps":{},"call":"c-2000"}"#),
      // A text that does not begin like an object may have a brace.
      (#"{"aps":{"alert":"x"}}"#, #"{"aps":{"alert":"in {braces}"}}"#),
    ])
  func same(template: String, payload: String) {
    #expect(Self.matches(template, payload) && judged(template).rules == judged(payload).rules)
  }

  @Test(
    "Whatever a rule may be about does not vary",
    arguments: [
      (#"{"aps":{"alert":"x"}}"#, #"{"aps":{"alert":""}}"#),
      (#"{"aps":{"alert":"x"}}"#, #"{"aps":{"alert":"Tom &amp; Jerry"}}"#),
      (#"{"aps":{"alert":"x"}}"#, #"{"aps":{"alert":"{\"a\":1}"}}"#),
      (#"{"aps":{"alert":"x"}}"#, #"{"aps":{"alert":"{}"}}"#),
      (#"{"aps":{"alert":"x"}}"#, "{\"aps\":{\"alert\":\"\u{a0}{}\"}}"),
      (#"{"aps":{"alert":"x"}}"#, "{\"aps\":{\"alert\":\"\u{e415}\"}}"),
      (#"{"aps":{"alert":"x"}}"#, #"{"aps":{"alert":"a\\ud83d"}}"#),
      (#"{"aps":{"alert":"x"}}"#, #"{"aps":{"alert":"x"}} "#),
      (#"{"aps":{"alert":"x"}}"#, "{\"aps\":{\"alert\":\"x\"}}\0"),
      (#"{"aps":{"alert":"x"}}"#, #"{"aps":{"title":"x"}}"#),
      (#"{"aps":{"badge":1}}"#, #"{"aps":{"badge":-1}}"#),
      (#"{"aps":{"badge":1}}"#, #"{"aps":{"badge":1.5}}"#),
      (#"{"aps":{"badge":1}}"#, #"{"aps":{"badge":01}}"#),
      (#"{"aps":{"badge":1}}"#, #"{"aps":{"badge":}}"#),
      (#"{"aps":{"content-available":1},"a":1}"#, #"{"aps":{"content-available":0},"a":1}"#),
      (#"{"aps":{"sound":"default"},"a":1}"#, #"{"aps":{"sound":"beep.mp3"},"a":1}"#),
      (#"{"aps":{"alert":"x"},"a":"b"}"#, #"{"aps":{"alert":"x"},"a":null}"#),
      (#"{"mdm":"a","x":1}"#, #"{"mdm":"","x":1}"#),
      // Keys are no data, however deep they are.
      (#"{"aps":{"alert":"x"},"of":{"a":"b"}}"#, #"{"aps":{"alert":"x"},"of":{"c":"b"}}"#),
      (#"{"aps":{"alert":"x"},"of":[{"a":{"b":1}}]}"#, #"{"aps":{"alert":"x"},"of":[{"a":{"long":1}}]}"#),
    ])
  func other(template: String, payload: String) {
    #expect(Self.matches(template, template) && !Self.matches(template, payload))
  }

  @Test("Another class of size has another template")
  func sizes() {
    func payload(_ size: Int) -> String {
      "{\"aps\":{\"alert\":\"\(String(repeating: "x", count: size - 20))\"}}"
    }
    for limit in [256, 2_048, 4_096] {
      #expect(Self.matches(payload(limit - 1), payload(limit)) && !Self.matches(payload(limit), payload(limit + 1)))
    }
  }

  @Test(
    "What is no JSON in UTF-8 alone has no template",
    arguments: [
      "", "x", #"{"aps":{"alert":"x"}"#, "{\"aps\":{\"alert\":\"x\"}}\0", "\u{feff}{\"aps\":{\"alert\":\"x\"}}", "[1]",
      #"{"a":"x","a":"y"}"#, #"{"aps":{"sound":"default"}}"#,
    ])
  func none(payload: String) { #expect(Self.template(Array(payload.utf8)) == nil) }

  // MARK: the table

  @Test("Templates are counted whole, whichever of them is dropped for another")
  func table() throws {
    var table = TemplateTable()
    var counted = 0
    var judge = PayloadJudge()
    for round in 0..<500 {
      // Twelve forms, of which eight are kept.
      let payload = Array("{\"aps\":{\"alert\":\"text \(round)\"},\"form\(round * 7 % 12)\":1}".utf8)
      if table.count(payload.rawBytes, environment: 1) != nil { continue }
      let judgement = judge.judge(payload.rawBytes)
      var entry = JudgementTable.Entry()
      (entry.rules, entry.kind) = (judgement.rules, judgement.kind)
      let template = judge.template(ofLast: payload.rawBytes)
      table.add(try #require(template), environment: 1, entry) { counted += $0.count }
      let (same, other) = (
        table.countLatest(payload.rawBytes, environment: 1), table.countLatest(payload.rawBytes, environment: 2)
      )
      #expect(same == judgement.rules && other == nil)
    }
    table.eachKept { counted += $0.count }
    #expect(counted == 500)
  }

  @Test("A template that matches is the latest, and the one that was used least lately makes room") func latest() throws
  {
    func payload(_ form: Int) -> [UInt8] { Array("{\"aps\":{\"alert\":\"text\"},\"form\(form)\":1}".utf8) }
    var table = TemplateTable()
    var judge = PayloadJudge()
    var forgotten = 0
    func add(_ form: Int) throws {
      let judgement = judge.judge(payload(form).rawBytes)
      var entry = JudgementTable.Entry()
      (entry.rules, entry.kind, entry.count) = (judgement.rules, judgement.kind, 100)
      let template = judge.template(ofLast: payload(form).rawBytes)
      table.add(try #require(template), environment: 1, entry) { _ in forgotten += 1 }
    }
    func counts(_ form: Int) -> Bool { table.count(payload(form).rawBytes, environment: 1) != nil }
    for form in 0..<8 { try add(form) }
    let first = counts(0)
    let isLatest = table.countLatest(payload(0).rawBytes, environment: 1) != nil
    #expect(first && isLatest && forgotten == 0)
    try add(8)
    let kept = (0..<9).map(counts)
    #expect(kept == [true, false] + Array(repeating: true, count: 7) && forgotten == 1)
    var counted = 0
    table.eachKept { counted += $0.count }
    // Counts begin at 0; each question above was a use.
    #expect(counted == 10)
  }

  @Test("The first templates are wanted, and then one of sixteen") func wanted() {
    var table = TemplateTable()
    let wanted = (1...320).map { _ in table.isWanted() }
    #expect(wanted.prefix(64).allSatisfy { $0 })
    #expect(wanted.dropFirst(64).count { $0 } == 16)
  }
}
