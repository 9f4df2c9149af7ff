import Bytes
import TestSupport
import Testing

@testable import LoadTest

/// Which tokens a load has: numbers from bytes, and a table of numbers.
@Suite("Listed tokens")
struct ListedTokensTests {
  @Test("The table is a set: it has what was listed, and nothing else", arguments: seeds(20, of: 200))
  func table(seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    let limit = generator.pick([0, 1, 40, 1_000, 100_000])
    let most = generator.pick([50, 5_000, Int.max])
    var tokens = ListedTokens(limit: limit)
    var (remembered, listed): (Set<UInt64>, Set<UInt64>) = ([], [])
    for _ in 0..<3_000 {
      let number = UInt64(generator.number(0...most))
      let isAfter = !generator.happens(oneIn: 4)
      let before = tokens
      let outcome = tokens.note(number, isAfterRegistration: isAfter)
      let hasRoom = number < 1 << 62 && (remembered.contains(number) || remembered.count < limit)
      #expect(outcome == (!hasRoom ? .notRemembered : isAfter ? .listed : .registeredSince))
      // What another has of it does not change.
      #expect(before.contains(number) == listed.contains(number))
      guard hasRoom else { continue }
      remembered.insert(number)
      if isAfter { listed.insert(number) }
    }
    #expect(tokens.count == remembered.count && tokens.count <= limit)
    #expect(tokens.listedCount == listed.count)
    for number in remembered { #expect(tokens.contains(number) == listed.contains(number)) }
    for _ in 0..<3_000 {
      let number = generator.next()
      #expect(tokens.contains(number) == listed.contains(number))
    }
  }

  @Test("A token's number is that of the notifications that carry it", arguments: seeds(30, of: 300))
  func numbers(seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    var plan = WorkloadPlan()
    plan.seed = generator.next()
    plan.tokenLength = generator.pick([1, 2, 7, 8, 9, 31, 32, 32, 32, 100])
    plan.tokens = min(plan.tokenLength < 8 ? 1 << (8 * plan.tokenLength) : .max, generator.pick([1, 2, 200, 1 << 40]))
    (plan.segments, plan.segment) = (3, generator.number(0...2))
    plan.faults = [.missingPayload: 0.1, .oversize: 0.05, .tokenSize: 0.1, .missingToken: 0.1, .malformed: 0.1]
    if plan.tokenLength >= 8 { plan.faults[.invalidToken] = 0.1 }
    plan.payloadFaults = ["token_length": 0.1, "json_trailing_comma": 0.1]
    let workload = try Workload(plan)
    for index in 0..<200 {
      let number = workload.number(of: index)
      let fault = workload.fault(of: number)
      // A malformed frame cannot be read.
      let token = fault == .malformed ? nil : try workload.read([number]).first?.token
      let recipient = workload.recipient(of: number)
      if let token {
        #expect(workload.number(ofToken: token.rawBytes) == recipient, "\(fault as Any)")
        if recipient != nil { #expect(token.count == plan.tokenLength) }
      } else {
        #expect(recipient == nil)
      }
      var tokens = ListedTokens(limit: 10)
      _ = tokens.note(workload.drawnToken(of: number), isAfterRegistration: true)
      #expect(workload.goes(number, to: tokens) == (recipient != nil))
      guard recipient != nil, var other = token, plan.tokenLength >= 8 else { continue }
      other[generator.number(0...other.count - 1)] ^= 1 << UInt8(generator.number(0...7))
      #expect(workload.number(ofToken: other.rawBytes) == nil)
    }
    // Short tokens are as many as there are values, or fewer.
    let length = plan.tokenLength
    for _ in 0..<1_000 {
      let bytes = generator.bytes(length)
      guard let number = workload.number(ofToken: bytes.rawBytes) else { continue }
      var written = ByteWriter()
      workload.writeToken(numbered: number, length: length, isInvalid: false, into: &written)
      #expect(Array(copying: written.bytes) == bytes && number < UInt64(plan.tokens))
    }
    #expect(workload.number(ofToken: generator.bytes(length + 1).rawBytes) == nil)
  }
}
