import BinaryProtocol
import Bytes
import Measurement
import Payload

/// The stream of notifications of a run: number n is a pure function of the plan's seed and n.
///
/// So nothing is kept for resends: the notification is generated again. Numbers count from 0 over the whole stream, of
/// which a run may send a segment; `number(of:)` returns those of this run. Encodes directly into the batch without
/// allocation. A class, because it is immutable and copying its parts would cost more than a batch.
public final class Workload: Sendable {
  /// Why a plan is invalid.
  public struct PlanError: Error, Sendable, Equatable, CustomStringConvertible {
    public let description: String
    init(_ description: String) { self.description = description }
  }

  package let plan: WorkloadPlan
  private let commands: WeightedChoice<UInt8>
  private let priorities: WeightedChoice<UInt8?>
  private let expirations: WeightedChoice<UInt32?>
  private let payloads: PayloadMaker
  private let faults: FaultChoice
  /// In the order of the codes of `plan.payloadFaults`.
  private let faultyPayloads: [PayloadBank]
  private let segment: UInt64
  private let segments: UInt64
  private let tokens: UInt64
  private let tokenLength: Int
  private let tokenKey: UInt64
  private let drawKey: UInt64
  /// `nil` when notifications differ in more than it has room for.
  private let template: FrameTemplate?
  /// Recorded notifications instead of made ones; of the plan only the segment then counts.
  private let replay: Replay?

  /// - Parameters:
  ///   - start: UNIX seconds that `{time}` in a template stands for, and that relative expirations begin at.
  ///   - replay: notifications to send instead of those of the plan; numbered like the stream.
  package init(_ plan: WorkloadPlan, start: Int = 0, replay: Replay? = nil) throws(PlanError) {
    guard (1...65_535).contains(plan.tokenLength) else {
      throw PlanError("the length of tokens must be 1 to 65535 bytes")
    }
    guard plan.tokens > 0 else { throw PlanError("the number of tokens must be at least 1") }
    guard plan.tokenLength >= 8 || plan.tokens <= 1 << (8 * plan.tokenLength) else {
      throw PlanError("a token of length \(plan.tokenLength) has fewer than \(plan.tokens) values")
    }
    guard plan.segments > 0, (0..<plan.segments).contains(plan.segment) else {
      throw PlanError("segment \(plan.segment) is not in 0..<\(plan.segments)")
    }
    for part in plan.commands.parts where part.value > 2 {
      throw PlanError("unknown command \(part.value); expected 0, 1 or 2")
    }
    guard plan.tokenLength >= 8 || plan.faults[.invalidToken, default: 0] == 0 else {
      throw PlanError("only tokens of 8 bytes or more can be marked as invalid")
    }
    self.plan = plan
    self.replay = replay
    (segment, segments) = (UInt64(plan.segment), UInt64(plan.segments))
    (tokens, tokenLength) = (UInt64(plan.tokens), plan.tokenLength)
    commands = try WeightedChoice(plan.commands, "commands")
    priorities = try WeightedChoice(plan.priorities, "priorities")
    expirations = try WeightedChoice(
      WorkloadPlan.Mix(plan.expirations.parts.map { ($0.value?.seconds(start: start), $0.weight) }), "expirations")
    payloads = try PayloadMaker(plan.payload, seed: plan.seed, start: start)
    let codes = plan.payloadFaults.keys.sorted()
    var banks: [PayloadBank] = []
    for code in codes {
      guard let rule = PayloadBank.rule(ofCode: code) else {
        throw PlanError("there is no rule '\(code)' that one notification's payload or frame can break")
      }
      banks.append(PayloadBank(breaking: rule, seed: plan.seed))
    }
    faultyPayloads = banks
    faults = try FaultChoice(plan.faults, payloads: codes.map { plan.payloadFaults[$0] ?? 0 })
    if commands.only == 2, let sizes = payloads.sizes, case .some(let expiration?) = expirations.only,
      case .some(let priority?) = priorities.only
    {
      template = FrameTemplate(
        sizes: sizes, longest: payloads.longestSize, tokenLength: tokenLength, expiration: expiration,
        priority: priority)
    } else {
      template = nil
    }
    tokenKey = SplitMix64.mixed(plan.seed ^ 0x746f_6b65_6e00_0001)
    drawKey = SplitMix64.mixed(plan.seed ^ 0x6e75_6d62_6572_0002)
  }

  /// Codes of rules that `WorkloadPlan.payloadFaults` can name.
  package static let faultyPayloadCodes = PayloadBank.codes

  /// The number in the stream of this run's notification `index` (from 0).
  @inline(__always)
  package func number(of index: Int) -> UInt64 {
    UInt64(truncatingIfNeeded: index) &* segments &+ segment
  }

  /// The identifier that notification `number` carries: 1 to 2³² − 2, then again from 1, because a gateway answers 0
  /// when it does not know, and the last one is kept for markers.
  @inline(__always)
  package static func identifier(of number: UInt64) -> UInt32 { UInt32(truncatingIfNeeded: number % 0xffff_fffe) &+ 1 }

  /// The fault of notification `number`; `nil` without one.
  package func fault(of number: UInt64) -> WorkloadPlan.Fault? {
    if let replay { return replay.isMissingToken(Int(truncatingIfNeeded: number)) ? .missingToken : nil }
    return faults.draw(NotificationRandom(of: number, drawKey)[.fault])
  }

  /// Some have tokens of lengths that a gateway may refuse.
  var hasBadTokenSizes: Bool {
    replay?.hasUnusualTokenSizes
      ?? (tokenLength != 32 || plan.faults[.tokenSize, default: 0] > 0
        || plan.payloadFaults["token_length", default: 0] > 0)
  }

  /// All payloads but those that are bad on purpose are as short as every gateway takes them: 256 bytes in commands 0 and
  /// 1, 2,048 in command 2. So one that is refused for its size is one of those.
  var hasUsualPayloadSizes: Bool {
    guard replay == nil else { return false }
    let hasShortest = plan.commands.parts.contains { $0.value < 2 && $0.weight > 0 }
    let most = hasShortest ? 256 : 2_048
    return payloads.longestSize <= most && faultyPayloads.allSatisfy { $0.longest <= most }
  }

  /// Writes notification `number`, and returns its fault.
  @discardableResult
  package func encode(_ number: UInt64, into output: inout ByteWriter) -> WorkloadPlan.Fault? {
    if replay != nil { return encodeRecorded(number, into: &output) }
    let random = NotificationRandom(of: number, drawKey)
    guard let fault = faults.draw(random[.fault]) else {
      encode(number, random, into: &output)
      return nil
    }
    if fault == .payload {
      encodeFaulty(number, random, into: &output)
    } else if let variation = Variation(fault, tokenLength: tokenLength) {
      encode(number, random, variation, into: &output)
    } else {
      Self.encodeMalformed(number, into: &output)
    }
    return fault
  }

  /// Apart, so that made ones go straight on.
  @inline(never)
  private func encodeRecorded(_ number: UInt64, into output: inout ByteWriter) -> WorkloadPlan.Fault? {
    replay?.encode(Int(truncatingIfNeeded: number), identifier: Self.identifier(of: number), into: &output)
    return fault(of: number)
  }

  /// Apart, as few are.
  @inline(never)
  private func encodeFaulty(_ number: UInt64, _ random: NotificationRandom, into output: inout ByteWriter) {
    let push = faultyPayloads[faults.bank(of: random[.fault])][random[.text]]
    let command = push.command ?? commands.draw(random[.command])
    let identifier = Self.identifier(of: number)
    let expiration = push.expiration ?? expirations.draw(random[.expiration])
    let variation = Variation(tokenLength: tokenLength)
    func write(token output: inout ByteWriter) {
      if let token = push.token { output.write(token.rawBytes) } else { writeToken(random, variation, into: &output) }
    }
    let length = push.token?.count ?? tokenLength
    output.reserve(64 + length + push.payload.count)
    guard command == 2 else {
      return BinaryFrame.encodeUnframed(
        numbers: command == 1 ? (identifier, expiration ?? 0) : nil, tokenLength: length,
        payloadLength: push.payload.count, into: &output, token: { write(token: &$0) },
        payload: { $0.write(push.payload.rawBytes) })
    }
    BinaryFrame.encodeFramed(
      tokenLength: length, payloadLength: push.payload.count, identifier: identifier, expiration: expiration,
      priority: push.hasPriority ? push.priority ?? priorities.draw(random[.priority]) : nil, into: &output,
      token: { write(token: &$0) }, payload: { $0.write(push.payload.rawBytes) })
  }

  /// Without a fault.
  @inline(__always)
  private func encode(_ number: UInt64, _ random: NotificationRandom, into output: inout ByteWriter) {
    switch template {
    case .some(let template):
      template.write(random, identifier: Self.identifier(of: number), into: &output) {
        writeToken(random, length: tokenLength, isInvalid: false, into: &$0)
      }
    case nil: encode(number, random, Variation(tokenLength: tokenLength), into: &output)
    }
  }

  private func encode(
    _ number: UInt64, _ random: NotificationRandom, _ variation: Variation, into output: inout ByteWriter
  ) {
    let command = commands.draw(random[.command])
    let size = payloads.size(of: number, random)
    let payloadLength = variation.hasPayload ? size + variation.extraPayload : 0
    let tokenLength = variation.tokenLength
    let identifier = Self.identifier(of: number)
    output.reserve(64 + tokenLength + payloadLength)
    guard command == 2 else {
      let expiration = command == 1 ? expirations.draw(random[.expiration]) ?? 0 : 0
      return BinaryFrame.encodeUnframed(
        numbers: command == 1 ? (identifier, expiration) : nil, tokenLength: tokenLength, payloadLength: payloadLength,
        into: &output, token: { writeToken(random, variation, into: &$0) },
        payload: {
          if variation.hasPayload { payloads.write(number, size, extra: variation.extraPayload, random, into: &$0) }
        })
    }
    BinaryFrame.encodeFramed(
      tokenLength: variation.hasToken ? tokenLength : nil, payloadLength: variation.hasPayload ? payloadLength : nil,
      identifier: identifier, expiration: expirations.draw(random[.expiration]),
      priority: payloads.priority(random) ?? priorities.draw(random[.priority]), into: &output,
      token: { writeToken(random, variation, into: &$0) },
      payload: { payloads.write(number, size, extra: variation.extraPayload, random, into: &$0) })
  }

  /// Token number i is a pure function of the seed and i, and no two are the same; which one a notification goes to is
  /// drawn.
  @inline(__always)
  private func writeToken(_ random: NotificationRandom, _ variation: Variation, into output: inout ByteWriter) {
    writeToken(random, length: variation.tokenLength, isInvalid: variation.hasInvalidToken, into: &output)
  }

  @inline(__always)
  private func writeToken(
    _ random: NotificationRandom, length: Int, isInvalid: Bool, into output: inout ByteWriter
  ) {
    let index = random[.token].multipliedFullWidth(by: tokens).high
    // An odd factor: all are different, and so are their last bytes as long as there are values for them.
    var state = tokenKey &+ index &* 0xd134_2543_de82_ef95
    var left = length
    if isInvalid {
      output.write(bigEndian: SyntheticToken.invalidPrefix)
      left -= 8
    } else if left < 8 {
      return output.write(last: left, of: state)
    }
    while left >= 8 {
      state &+= SplitMix64.step
      output.write(bigEndian: SplitMix64.mixed(state))
      left -= 8
    }
    output.write(last: left, of: SplitMix64.mixed(state &+ SplitMix64.step))
  }
}

/// The random words of one notification, one for each decision, so that decisions are independent.
struct NotificationRandom {
  enum Purpose: UInt64 { case token, fault, command, sizes, size, priority, expiration, text }

  private let base: UInt64

  @inline(__always)
  init(of number: UInt64, _ key: UInt64) { base = SplitMix64.mixed(key &+ number &* SplitMix64.step) }

  @inline(__always)
  subscript(purpose: Purpose) -> UInt64 {
    purpose == .token ? base : SplitMix64.mixed(base &+ purpose.rawValue)
  }
}

extension ByteWriter {
  /// Writes the last `count` (below 8) bytes of a word.
  @inline(__always)
  mutating func write(last count: Int, of word: UInt64) {
    var left = count
    while left > 0 {
      left -= 1
      write(UInt8(truncatingIfNeeded: word >> (8 * UInt64(left))))
    }
  }
}
