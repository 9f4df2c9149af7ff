import Bytes
import Foundation
import Payload
import TestSupport
import Testing

@testable import LoadTest

/// Tokens and payloads of files instead of made ones.
@Suite("Workloads with listed tokens and payloads")
struct WorkloadListTests {
  private func list(_ text: String) throws -> TokenList {
    var list = TokenList()
    // By bytes: to a string CR and LF are one character.
    for line in text.utf8.split(separator: 0x0a, omittingEmptySubsequences: false) {
      try list.add(line: Array(line).rawBytes)
    }
    return list
  }

  private func payloads(_ lines: String...) throws -> PayloadList {
    var reader = PayloadListReader()
    for (index, line) in lines.enumerated() { try reader.add(line: Array(line.utf8).rawBytes, number: index + 1) }
    return reader.list
  }

  @Test("Lines are tokens in either case; comments, empty lines and states of devices are passed over")
  func lines() throws {
    let list = try list("# last campaign\n\n 0aFF \t# mine\r\n00 uninstalled\n  \n#\n0AFF")
    #expect((list.count, list.differentCount) == (3, 2) && list.lengths == 1...2 && list.length == nil)
    #expect((0..<4).map { list.token(ofNotification: $0) } == [0, 1, 0, 0])
    #expect(list.number(of: ([0x0a, 0xff] as [UInt8]).rawBytes) == 0)
    #expect(list.number(of: ([0] as [UInt8]).rawBytes) == 1 && list.number(of: ([1] as [UInt8]).rawBytes) == nil)
    #expect(TokenList().number(of: ([1] as [UInt8]).rawBytes) == nil)
  }

  @Test(
    "A line that is no token says why",
    arguments: [
      ("abc", "odd number"), ("zz", "'zz' is not a token in hexadecimal"), ("ab cd", "unexpected 'cd'"),
      ("ab active now", "unexpected"), (String(repeating: "é", count: 40), "…' is not a token"),
      (String(repeating: "00", count: 65_536), "65536 bytes; expected 1 to 65535"),
    ])
  func badLines(line: String, words: String) throws {
    var list = TokenList()
    do throws(Workload.PlanError) {
      try list.add(line: Array(line.utf8).rawBytes)
      Issue.record("it was taken")
    } catch {
      #expect(error.description.contains(words), "\(error)")
    }
    #expect(list.count == 0)
  }

  @Test(
    "Every notification goes to the next token, and the token's number is found again", arguments: seeds(30, of: 200))
  func order(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let isMixed = random.happens(oneIn: 2)
    let different = (0..<random.number(1...200)).map { _ in random.bytes(isMixed ? random.number(8...40) : 32) }
    // Some are listed again.
    let tokens = different + (0..<random.number(0...5)).map { _ in random.pick(different) }
    var plan = random.plan()
    plan.tokenList = try TokenList(tokens)
    // Only command 2 can lack a token; and a sample that breaks a rule may have a token of its own.
    (plan.tokens, plan.tokenLength, plan.payloadFaults) = (1, 1, ["token_length": 0.1])
    plan.faults = [.missingToken: 0.1, .missingPayload: 0.1, .malformed: 0.1, .invalidToken: 0.1]
    if !isMixed { plan.faults[.tokenSize] = 0.1 }
    let workload = try Workload(plan, start: 1_700_000_000)
    for number in (0..<60).map({ _ in random.pick([UInt64(random.number(0...1_000)), random.next(), .max]) }) {
      let expected = tokens[Int(number % UInt64(tokens.count))]
      let fault = workload.fault(of: number)
      let recipient = workload.recipient(of: number)
      #expect((recipient == nil) == ![nil, .missingPayload].contains(fault) || fault == .payload)
      guard fault != .malformed else { continue }
      let read = try #require(ReadNotification.all(in: workload.bytes(number)).first)
      switch fault {
      case nil, .missingPayload: #expect(read.token == expected)
      case .missingToken: #expect(read.token.isEmpty)
      case .tokenSize: #expect(read.token == expected.dropLast())
      case .invalidToken:
        #expect(read.token.count == expected.count && read.token.dropFirst(8) == expected.dropFirst(8))
        #expect(read.token.starts(with: [0x0b, 0xad, 0x0b, 0xad]))
      default: break
      }
      #expect(workload.number(ofToken: read.token.rawBytes) == recipient)
      guard let recipient else { continue }
      #expect(recipient < UInt64(Set(tokens).count))
      var listed = ListedTokens(limit: 10)
      _ = listed.note(recipient, isAfterRegistration: true)
      #expect(workload.goes(number, to: listed))
    }
    #expect(workload.hasBadTokenSizes)
    #expect(try JSONDecoder().decode(WorkloadPlan.self, from: JSONEncoder().encode(plan)) == plan)
  }

  @Test("With tokens of one length the template writes the bytes of every other way")
  func template() throws {
    var plan = WorkloadPlan()
    plan.tokenList = try TokenList([[UInt8](repeating: 1, count: 32), [UInt8](repeating: 2, count: 32)])
    var other = plan
    other.priorities = WorkloadPlan.Mix([(10, 1), (10, 1)])
    let (workload, drawn) = (try Workload(plan), try Workload(other))
    for number in 0..<100 as Range<UInt64> { #expect(workload.bytes(number) == drawn.bytes(number)) }
    #expect(!workload.hasBadTokenSizes)
  }

  @Test("Lists that cannot be sent are refused")
  func badLists() throws {
    func problem(_ change: (inout WorkloadPlan) throws -> Void) throws -> String {
      var plan = WorkloadPlan()
      try change(&plan)
      do throws(Workload.PlanError) {
        _ = try Workload(plan)
        return ""
      } catch {
        return error.description
      }
    }
    #expect(try problem { $0.tokenList = TokenList() } == "the list of tokens is empty")
    #expect(throws: Workload.PlanError.self) { try TokenList([]) }
    let short = try TokenList([[1, 2, 3], [1, 2]])
    #expect(try problem { ($0.tokenList, $0.faults) = (short, [.tokenSize: 0.1]) }.contains("tokens of one length"))
    #expect(try problem { ($0.tokenList, $0.faults) = (short, [.invalidToken: 0.1]) }.contains("8 bytes or more"))
    #expect(try problem { $0.tokenList = short } == "")
    #expect(try problem { $0.payload = .listed(PayloadList()) }.contains("weights of listed payloads"))
    let long = PayloadList([.init([UInt8](repeating: 0x20, count: 257))])
    #expect(try problem { $0.payload = .listed(long) } == "")
    #expect(
      try problem { ($0.payload, $0.commands) = (.listed(long), .init([(2, 1), (1, 1)])) }.contains("at most 256"))
  }

  @Test("Payloads come as often as their weights say, silent ones with priority 5, all as they are")
  func payloads() throws {
    let silent = #"{"aps":{"content-available":1},"weight":7}"#
    let alert = #"{ "payload": 1, "aps": {"alert":"hi"}}"#
    let list = try payloads(
      "  " + silent + "\r", "", #"{"weight":3,"payload":\#(alert)}"#, #"{"payload":{"aps":{"badge":1}},"weight":0}"#)
    #expect(list.entries.map(\.line) == [1, 3, 4] && list.entries.map(\.weight) == [1, 3, 0])
    var plan = WorkloadPlan()
    plan.payload = .listed(list)
    let read = try Workload(plan).read(0..<20_000)
    let ofSilent = read.filter { $0.payload.text == silent }
    #expect(WorkloadShareTests.isLikely(ofSilent.count, share: 0.25))
    #expect(ofSilent.allSatisfy { $0.priority == 5 })
    let others = read.filter { $0.payload.text == alert }
    #expect(others.count + ofSilent.count == read.count && others.allSatisfy { $0.priority == 10 })
    plan.faults = [.oversize: 1]
    #expect(try Workload(plan).read(0..<10).allSatisfy { $0.payload.isJSON && $0.payload.count > 4_096 })
    #expect(try JSONDecoder().decode(WorkloadPlan.self, from: JSONEncoder().encode(plan)) == plan)
  }

  @Test(
    "A line that is neither a payload nor an entry says why",
    arguments: [
      ("{", "not a JSON object"), ("[1]", "not a JSON object"), (#"{"aps":{}} x"#, "not a JSON object"),
      (#"{"alert":"hi"}"#, "'alert' is neither of a payload nor of an entry"), ("{}", "neither a payload nor an entry"),
      (#"{"weight":3}"#, "neither a payload nor an entry"), (#"{"payload":"{}"}"#, "'payload' is not a JSON object"),
      (#"{"payload":{},"weight":-1}"#, "'weight' is not a number"),
      (#"{"payload":{},"weight":"3"}"#, "'weight' is not a number"),
      (#"{"payload":{},"weight":1e999}"#, "'weight' is not a number"),
      (#"{"payload":{},"weight":1,"weight":2}"#, "'weight' is given twice"),
      (#"{"payload":{},"topic":3}"#, "'topic'"), (#"{"payload":{},"wieght":3}"#, "'wieght'"),
      (#"{"type":"notification","payload":{}}"#, "--replay sends records"),
    ])
  func badPayloads(line: String, words: String) throws {
    do {
      _ = try payloads(line)
      Issue.record("it was taken")
    } catch let error as Workload.PlanError {
      #expect(error.description.contains(words), "\(error)")
    }
  }

  @Test("A payload may be as long as its command and topic allow, to the byte")
  func lengths() {
    for (command, topic, most) in [
      (0, nil, 256), (1, "a.voip", 256), (2, nil, 2_048), (2, "com.example.a", 2_048), (2, "com.example.a.voip", 4_096),
    ] as [(UInt8, String?, Int)] {
      for length in [most, most + 1] {
        var list = PayloadList([.init([1]), .init([UInt8](repeating: 0x20, count: length), topic: topic)])
        let long = list.firstTooLong(for: .init([(command, 1), (0, 0)]))
        #expect((long == nil) == (length == most), "\(command) \(length) \(long as Any)")
        // What is never sent may be of any length.
        list.entries[1].weight = 0
        #expect(list.firstTooLong(for: .init(command)) == nil)
      }
    }
  }

  @Test("Of several topics those of a run are kept, and those of none")
  func topics() {
    var list = PayloadList([.init([1], topic: "a"), .init([2], topic: "b"), .init([3])])
    #expect(list.topics == ["a", "b"])
    #expect(list.select(topics: ["b"]) == 1 && list.entries.map(\.payload) == [[2], [3]])
  }
}
