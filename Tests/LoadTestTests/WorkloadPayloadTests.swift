import BinaryProtocol
import Bytes
import Payload
import PushModel
import Testing

@testable import LoadTest

@Suite("Workloads with payloads of kinds, and with payloads that break rules")
struct WorkloadPayloadTests {
  private func notifications(_ plan: WorkloadPlan, _ count: Int) throws -> [(
    bytes: [UInt8], fault: WorkloadPlan.Fault?
  )] {
    let workload = try Workload(plan)
    return (0..<UInt64(count)).map { number in
      var output = ByteWriter(capacity: 8_192)
      let fault = workload.encode(number, into: &output)
      return (Array(copying: output.bytes), fault)
    }
  }

  private func judgement(_ frame: [UInt8]) throws -> PayloadJudgement {
    let fields = try PushFields(parsing: frame.rawBytes)
    var judge = PayloadJudge()
    return judge.judge(
      frame.rawBytes.extracting(fields.payload.range),
      in: PayloadEnvironment(
        frame: PushFrame(
          command: fields.command.rawValue, priority: fields.priority, expiration: fields.expiration,
          sentAt: 1_435_708_800, token: Array(copying: frame.rawBytes.extracting(fields.token.range)))))
  }

  @Test("Kinds come as often as their weights say, and break no rule that they need not break")
  func kinds() throws {
    var plan = WorkloadPlan()
    plan.payload = .kinds(WorkloadPlan.Mix([(.alert, 6), (.background, 3), (.badgeOnly, 1)]))
    plan.expirations = WorkloadPlan.Mix(.at(1_435_800_000))
    var counts: [PayloadKind: Int] = [:]
    for (bytes, fault) in try notifications(plan, 3_000) {
      let judged = try judgement(bytes)
      #expect(fault == nil && judged.isClean, "\(judged.rules.codes)")
      counts[judged.kind, default: 0] += 1
    }
    #expect(Set(counts.keys) == [.alert, .background, .badgeOnly])
    #expect((1_600...2_000).contains(counts[.alert, default: 0]))
    #expect((750...1_050).contains(counts[.background, default: 0]))
  }

  @Test("The notifications of a plan that says nothing break no rule, and outlast the longest runs")
  func defaults() throws {
    let start = 1_435_708_800
    let workload = try Workload(WorkloadPlan(), start: start)
    for number in 0..<500 as Range<UInt64> {
      var output = ByteWriter(capacity: 8_192)
      _ = workload.encode(number, into: &output)
      let frame = Array(copying: output.bytes)
      #expect(try judgement(frame).isClean)
      let expiration = try #require(try PushFields(parsing: frame.rawBytes).expiration)
      #expect(Int(expiration) - start >= 7 * 86_400)
    }
  }

  @Test("Each rule that one notification can break is broken by its faulty payloads", arguments: PayloadBank.codes)
  func faults(code: String) throws {
    var plan = WorkloadPlan()
    plan.payloadFaults = [code: 1]
    for (bytes, fault) in try notifications(plan, 20) {
      #expect(fault == .payload)
      let codes = try judgement(bytes).rules.codes
      #expect(codes.contains(code), "\(codes)")
    }
  }

  @Test("Shares are met beside other faults, and a share too many is refused")
  func shares() throws {
    var plan = WorkloadPlan()
    plan.faults = [.missingPayload: 0.2]
    plan.payloadFaults = ["badge_type": 0.3, "json_truncated": 0.1]
    var counts: [String: Int] = [:]
    for (bytes, fault) in try notifications(plan, 4_000) {
      guard fault == .payload else {
        counts[fault?.rawValue ?? "none", default: 0] += 1
        continue
      }
      for code in try judgement(bytes).rules.codes where plan.payloadFaults[code] != nil {
        counts[code, default: 0] += 1
      }
    }
    for (name, share) in [("missing-payload", 0.2), ("badge_type", 0.3), ("json_truncated", 0.1), ("none", 0.4)] {
      #expect(abs(Double(counts[name, default: 0]) / 4_000 - share) < 0.04, "\(counts)")
    }
    plan.payloadFaults["badge_value"] = 0.6
    #expect(throws: Workload.PlanError.self) { try Workload(plan) }
    plan.payloadFaults = ["background_too_often": 0.1]
    #expect(throws: Workload.PlanError.self) { try Workload(plan) }
  }
}
