import BinaryProtocol
import Bytes
import Foundation
import PushModel
import TestSupport
import Testing

@testable import LoadTest

@Suite("Workloads")
struct WorkloadTests {
  static func plan(_ change: (inout WorkloadPlan) -> Void) -> WorkloadPlan {
    var plan = WorkloadPlan()
    change(&plan)
    return plan
  }

  @Test("A workload that differs in little is written from a template, and the bytes are those of every other way")
  func template() throws {
    let payloads: [WorkloadPlan.Payload] = [
      .sizes(.init(100...200)), .sizes(.init([(20...20, 1), (189...4_096, 3)])), .sizes(.init(256...256)),
    ]
    for (payload, tokenLength) in zip(payloads, [32, 5, 70]) {
      var plan = WorkloadPlan()
      (plan.payload, plan.tokenLength, plan.faults) = (payload, tokenLength, [.missingPayload: 0.1])
      var other = plan
      // Two values that are the same are drawn all the same, which the template has no room for.
      other.priorities = WorkloadPlan.Mix([(10, 1), (10, 1)])
      let (workload, drawn) = (try Workload(plan, start: 1_700_000_000), try Workload(other, start: 1_700_000_000))
      let numbers: [UInt64] = [65_535, 65_536, 0xffff_fffd, 0xffff_fffe, 1 << 40]
      for number in Array(0..<300) + numbers {
        #expect(workload.bytes(number) == drawn.bytes(number), "notification \(number)")
      }
    }
  }

  @Test(
    "A notification is the same whenever and in whatever order it is written", arguments: seeds(20, of: 60))
  func pure(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let plan = random.plan()
    let workload = try Workload(plan)
    var numbers = (0..<20).map { _ in random.pick([random.next(), UInt64(random.number(0...100)), .max]) }
    let each = Dictionary(numbers.map { ($0, workload.bytes($0)) }) { $1 }
    let again = try Workload(plan)
    numbers.shuffle(using: &random)
    #expect(again.bytes(numbers) == numbers.flatMap { each[$0] ?? [] })
    #expect(numbers.allSatisfy { workload.fault(of: $0) == again.fault(of: $0) })
    // Another seed is another stream.
    var other = plan
    other.seed &+= 1
    #expect(try Workload(other).bytes(numbers) != workload.bytes(numbers))
  }

  @Test("A push has the fields of its frame, whatever frames it", arguments: seeds(50, of: 200))
  func pushes(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    var plan = random.plan()
    if random.happens(oneIn: 8) {
      (plan.faults, plan.payloadFaults) = ([:], [random.pick(Workload.faultyPayloadCodes): 0.5])
    }
    let workload = try Workload(plan, start: 1_700_000_000)
    for number in (0..<24).map({ _ in UInt64(random.number(0...1_000)) }) {
      let push = workload.push(number)
      #expect(push.fault == workload.fault(of: number))
      guard push.fault != .malformed else { continue }
      let read = try #require(ReadNotification.all(in: workload.bytes(number)).first)
      #expect(push.tokenLength ?? 0 == read.token.count && push.payloadLength ?? 0 == read.payload.count)
      var token = ByteWriter()
      var payload = ByteWriter()
      workload.writeToken(of: push, into: &token)
      workload.writePayload(of: push, into: &payload)
      #expect(Array(copying: token.bytes) == read.token && Array(copying: payload.bytes) == read.payload)
      switch read.command {
      case 0: #expect(read.expiration == nil && read.priority == nil)
      case 1: #expect(read.expiration == push.expiration ?? 0 && read.priority == nil)
      default: #expect(read.expiration == push.expiration && read.priority == push.priority)
      }
    }
  }

  @Test("Any plan gives what it says", arguments: seeds(100, of: 300))
  func asPlanned(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let plan = random.plan()
    let workload = try Workload(plan, start: 1_700_000_000)
    for number in (0..<12).map({ _ in random.pick([random.next(), UInt64(random.number(0...100)), .max, 0xffff_fffd]) })
    {
      let fault = workload.fault(of: number)
      let bytes = workload.bytes(number)
      guard fault != .malformed else {
        #expect(throws: ParseError.self) { try ReadNotification.all(in: bytes) }
        continue
      }
      let all = try ReadNotification.all(in: bytes)
      let read = try #require(all.first)
      #expect(all.count == 1 && read.isUsual)
      #expect(plan.commands.parts.contains { $0.value == read.command })
      #expect(read.identifier == (read.command == 0 ? nil : Workload.identifier(of: number)))
      if read.command == 2 {
        #expect(plan.priorities.parts.contains { $0.value == read.priority })
        #expect(plan.expirations.parts.contains { $0.value?.seconds(start: 1_700_000_000) == read.expiration })
      } else if read.command == 1 {
        #expect(plan.expirations.parts.contains { $0.value?.seconds(start: 1_700_000_000) ?? 0 == read.expiration })
      }
      switch fault {
      case .missingToken: #expect(read.token.isEmpty)
      case .tokenSize: #expect(read.token.count != plan.tokenLength && !read.token.isEmpty)
      default: #expect(read.token.count == plan.tokenLength)
      }
      let isMarked = read.token.starts(with: [0x0b, 0xad, 0x0b, 0xad, 0x0b, 0xad, 0x0b, 0xad])
      #expect(isMarked == (fault == .invalidToken))
      guard fault != .missingPayload else {
        #expect(read.payload.isEmpty)
        continue
      }
      #expect(read.payload.isJSON, "\(read.payload.text)")
      if fault == .oversize {
        #expect(read.payload.count > 4_096)
      } else if case .sizes(let mix) = plan.payload {
        #expect(mix.parts.contains { $0.value.contains(read.payload.count) })
      }
    }
  }

  @Test("Templates are filled in")
  func templates() throws {
    func filled(_ template: String, _ number: UInt64) throws -> String {
      let workload = try Workload(Self.plan { $0.payload = .template(template) }, start: 1_234)
      return try #require(try workload.read([number]).first).payload.text
    }
    #expect(try filled(#"{"n":{index},"t":{time}}"#, 0) == #"{"n":0,"t":1234}"#)
    #expect(try filled("{index}", .max) == "18446744073709551615")
    #expect(try filled("{index}{index}", 10) == "1010")
    #expect(try filled("a{random:0}b", 1) == "ab")
    // What is no placeholder stays.
    for text in [
      "{", "}", "{}", "{{}}", "{index", "index}", "{Index}", "{ index }", #"{"index"}"#, "{random}", "{random:5",
      "{random:}", "{random:-1}", #"{random:5"}"#,
    ] {
      #expect(try filled(text, 1) == text)
    }
    let random = try filled("{random:1000}", 1)
    #expect(random.count == 1_000 && Set(random) == Set("abcdefghijklmnop"))
    #expect(try filled("{random:1000}", 2) != random)
    let two = try filled("{random:11}-{random:11}", 3).split(separator: "-")
    #expect(two.count == 2 && two[0] != two[1] && two.allSatisfy { $0.count == 11 })
  }

  @Test("Identifiers begin with 1 and never are 0 or all ones")
  func identifiers() {
    let numbers: [UInt64] = [0, 1, 0xffff_fffc, 0xffff_fffd, 0xffff_fffe, 0xffff_ffff, 0x1_0000_0000]
    #expect(numbers.map { Workload.identifier(of: $0) } == [1, 2, 0xffff_fffd, 0xffff_fffe, 1, 2, 3])
    let late: [UInt64] = [.max, .max - 1, .max / 0xffff_fffe * 0xffff_fffe]
    #expect(late.allSatisfy { Workload.identifier(of: $0) != 0 && Workload.identifier(of: $0) != .max })
  }

  @Test("Four quarters are the whole stream", arguments: 1...10 as ClosedRange<UInt64>)
  func segments(seed: UInt64) throws {
    var plan = WorkloadPlan()
    plan.seed = seed
    let whole = try Workload(plan)
    var parts: [UInt64: [UInt8]] = [:]
    plan.segments = 4
    for segment in 0..<4 {
      plan.segment = segment
      let workload = try Workload(plan)
      for index in 0..<25 {
        let number = workload.number(of: index)
        #expect(parts.updateValue(workload.bytes(number), forKey: number) == nil)
      }
    }
    #expect(parts.keys.sorted() == (0..<100).map { whole.number(of: $0) })
    for (number, bytes) in parts { #expect(whole.bytes(number) == bytes) }
  }

  @Test("Each fault is refused for what it is", arguments: WorkloadPlan.Fault.allCases, [0, 1, 2] as [UInt8])
  func refused(fault: WorkloadPlan.Fault, command: UInt8) throws {
    let status: ErrorResponse.Status =
      switch fault {
      case .invalidToken: .invalidToken
      case .tokenSize: .invalidTokenSize
      case .missingToken: .missingDeviceToken
      case .missingPayload: .missingPayload
      case .oversize: .invalidPayloadSize
      case .malformed: .protocolError
      case .payload: .none  // Not among these: the frame is right.
      }
    for (tokenLength, payload) in [
      (32, WorkloadPlan.Payload.sizes(.init(20...20))), (8, .template("{}")), (100, .sizes(.init(4_096...4_096))),
      (65_535, .template("{\"n\":{index}}")), (1, .sizes(.init(20...300))),
    ] where tokenLength >= 8 || fault != .invalidToken {
      let workload = try Workload(
        Self.plan {
          $0.commands = .init(command)
          $0.tokens = 100
          $0.tokenLength = tokenLength
          $0.payload = payload
          $0.faults = [fault: 0.25]
        })
      var output = ByteWriter()
      let first = try #require((0 as UInt64..<100).first { workload.fault(of: $0) == fault })
      for number in 0...first { workload.encode(number, into: &output) }
      var session = GatewaySession(rules: .init(tokenLengths: tokenLength...tokenLength, maximumPayloadLength: 4_096))
      let consumed = session.receive(output.bytes) { notification in
        DeviceToken.isInvalid(notification.token) ? .status(.invalidToken) : nil
      }
      #expect(consumed == output.count)
      let ending = try #require(session.ending)
      #expect(ending.status == status)
      #expect(ending.notification == Int(first) && session.accepted == Int(first))
      if command != 0 || fault == .malformed {
        #expect(ending.response == ErrorResponse(status: status, identifier: Workload.identifier(of: first)))
      }
      if case .malformed = ending.cause { #expect(fault == .malformed) } else { #expect(fault != .malformed) }
    }
  }

  @Test("An expiration after the start of the run is so many seconds later, as far as the protocol goes")
  func relativeExpirations() throws {
    for (start, seconds, expected) in [
      (1_700_000_000, 3_600, 1_700_003_600), (4_294_967_000, 3_600, 4_294_967_295), (0, 3_600, 3_600), (-5, 7, 7),
      (Int.max, 1, 4_294_967_295),
    ] as [(Int, UInt32, UInt32)] {
      let plan = Self.plan { $0.expirations = .init(.after(seconds: seconds)) }
      let workload = try Workload(plan, start: start)
      for number in 0..<50 as Range<UInt64> {
        let read = try #require(try ReadNotification.all(in: workload.bytes(number)).first)
        #expect(read.expiration == expected || read.command == 0)
      }
    }
  }

  @Test("Without faults nothing is refused", arguments: 1...20 as ClosedRange<UInt64>)
  func accepted(seed: UInt64) throws {
    let workload = try Workload(
      Self.plan {
        $0.seed = seed
        $0.commands = .init([(0, 1), (1, 1), (2, 1)])
        $0.priorities = .init([(10, 1), (5, 1), (nil, 1)])
        $0.expirations = .init([(nil, 1), (77, 1)])
        $0.payload = .sizes(.init([(20...2_048, 1)]))
      })
    var output = ByteWriter()
    for number in 0..<500 as Range<UInt64> { workload.encode(number, into: &output) }
    var session = GatewaySession()
    #expect(session.receive(output.bytes) { _ in nil } == output.count)
    #expect(session.accepted == 500 && session.ending == nil)
  }

  @Test("A plan in JSON is the same plan", arguments: 1...40 as ClosedRange<UInt64>)
  func json(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let plan = random.plan()
    #expect(try JSONDecoder().decode(WorkloadPlan.self, from: JSONEncoder().encode(plan)) == plan)
  }

  @Test("Bad plans say what is wrong", arguments: BadPlan.all)
  func badPlans(bad: BadPlan) {
    #expect(throws: (any Error).self) { try Workload(bad.plan) }
    do throws(Workload.PlanError) {
      _ = try Workload(bad.plan)
    } catch {
      #expect(error.description.contains(bad.word), "\(error)")
    }
  }
}

struct BadPlan: Sendable, CustomTestStringConvertible {
  var word: String
  var plan = WorkloadPlan()
  var testDescription: String { word }

  init(_ word: String, _ change: (inout WorkloadPlan) -> Void) {
    self.word = word
    change(&plan)
  }

  static let all = [
    BadPlan("the number of tokens must be at least 1") { $0.tokens = 0 },
    BadPlan("the number of tokens must be at least 1") { $0.tokens = .min },
    BadPlan("the length of tokens must be 1 to 65535 bytes") { $0.tokenLength = 0 },
    BadPlan("the length of tokens must be 1 to 65535 bytes") { $0.tokenLength = 65_536 },
    BadPlan("fewer than 257 values") { ($0.tokens, $0.tokenLength) = (257, 1) },
    BadPlan("8 bytes or more") { ($0.tokens, $0.tokenLength, $0.faults) = (1, 7, [.invalidToken: 0.1]) },
    BadPlan("segment 4 is not in 0..<4") { ($0.segment, $0.segments) = (4, 4) },
    BadPlan("segment -1 ") { $0.segment = -1 },
    BadPlan("0..<0") { $0.segments = 0 },
    BadPlan("segment \(Int.max) ") { $0.segment = .max },
    BadPlan("unknown command 3") { $0.commands = .init(3) },
    BadPlan("weights of commands") { $0.commands = .init([]) },
    BadPlan("weights of priorities") { $0.priorities = .init([(10, 0)]) },
    BadPlan("weights of expirations") { $0.expirations = .init([(1, 1), (2, -1)]) },
    BadPlan("weights of priorities") { $0.priorities = .init([(10, .nan)]) },
    BadPlan("weights of priorities") { $0.priorities = .init([(10, .infinity)]) },
    BadPlan("weights of priorities") { $0.priorities = .init([(10, 1e308), (5, 1e308)]) },
    BadPlan("weights of payload sizes") { $0.payload = .sizes(.init([])) },
    BadPlan("19 to 100 bytes") { $0.payload = .sizes(.init(19...100)) },
    BadPlan("20 to 61439") { $0.payload = .sizes(.init(100...61_440)) },
    BadPlan("empty payloads") { $0.payload = .template("") },
    BadPlan("empty payloads") { $0.payload = .template("{random:0}") },
    BadPlan("more than 61439") { $0.payload = .template(String(repeating: "{random:4096}", count: 15)) },
    BadPlan("more than 61439") { $0.payload = .template(String(repeating: "{", count: 61_440)) },
    BadPlan("more than 61439") { $0.payload = .template(String(repeating: "{index}", count: 3_072)) },
    BadPlan("which stands for {due_ns}") { $0.payload = .template("{\"n\":1000000000000000001}") },
    BadPlan("which stands for {written_ns}") { $0.payload = .template("[{written_ns},1000000000000000002]") },
    BadPlan("{random:4097}") { $0.payload = .template("{random:4097}") },
    BadPlan("0 to 4096") { $0.payload = .template("{random:99999999999999999999}") },
    BadPlan("share of oversize") { $0.faults = [.oversize: -0.1] },
    BadPlan("share of malformed") { $0.faults = [.malformed: 1.1] },
    BadPlan("share of missing-token") { $0.faults = [.missingToken: .nan] },
    BadPlan("add up to more than 1") { $0.faults = [.malformed: 0.6, .oversize: 0.6] },
  ]
}
