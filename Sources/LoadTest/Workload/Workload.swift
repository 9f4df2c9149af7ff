import Bytes
import Measurement
import Payload
import PushModel

/// The stream of notifications of a run: number n is a pure function of the plan's seed and n.
///
/// So no notification is kept for resends, but generated again. Numbers count from 0 over the whole stream, of which a
/// run may send a segment; `number(of:)` returns the numbers of this run. Notifications are encoded directly into the
/// batch without allocation. A class, because it is immutable and copying its parts would cost more than a batch.
public final class Workload: Sendable {
  /// Why a plan is invalid, as a sentence.
  public struct PlanError: Error, Sendable, Equatable, CustomStringConvertible {
    public let description: String
    init(_ description: String) { self.description = description }
  }

  package let plan: WorkloadPlan
  private let priorities: WeightedChoice<UInt8?>
  private let expirations: WeightedChoice<UInt32?>
  private let payloads: PayloadMaker
  private let faults: FaultChoice
  /// In the order of the codes of `plan.payloadFaults`.
  private let faultyPayloads: [PayloadBank]
  private let segment: UInt64
  private let segments: UInt64
  let tokens: UInt64
  /// Of made tokens.
  let tokenLength: Int
  /// Whether tokens are those of `tokenList`, and not made. Beside the list, because asking an optional for arrays
  /// counts references for each notification.
  let hasTokenList: Bool
  let tokenList: TokenList
  let tokenKey: UInt64
  let drawKey: UInt64
  /// How the binary protocol frames a push.
  let framing: BinaryFraming
  /// Recorded notifications instead of generated ones; of the plan only the segment then counts.
  let replay: Replay?

  /// - Parameters:
  ///   - start: the UNIX seconds for `{time}` in a template, and from which relative expirations count.
  ///   - replay: notifications to send instead of generated ones, numbered like the stream.
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
    let shortest = plan.tokenList?.lengths.lowerBound ?? plan.tokenLength
    guard shortest >= 8 || plan.faults[.invalidToken, default: 0] == 0 else {
      throw PlanError("only tokens of 8 bytes or more can be marked as invalid")
    }
    if let list = plan.tokenList {
      guard list.count > 0 else { throw PlanError("the list of tokens is empty") }
      // A token that is cut short may be another one of the list.
      guard list.length != nil || plan.faults[.tokenSize, default: 0] == 0 else {
        throw PlanError("the fault \(WorkloadPlan.Fault.tokenSize.rawValue) needs listed tokens of one length")
      }
    }
    if case .listed(let list) = plan.payload, let long = list.firstTooLong(for: plan.commands) {
      throw PlanError((long.line.map { "line \($0) of the payloads: " } ?? "") + long.problem)
    }
    self.plan = plan
    self.replay = replay
    (segment, segments) = (UInt64(plan.segment), UInt64(plan.segments))
    (hasTokenList, tokenList) = (plan.tokenList != nil, plan.tokenList ?? TokenList())
    (tokens, tokenLength) = (hasTokenList ? UInt64(tokenList.differentCount) : UInt64(plan.tokens), plan.tokenLength)
    let commands = try WeightedChoice(plan.commands, "commands")
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
    framing = BinaryFraming(
      commands, payloads, tokenLength: hasTokenList ? tokenList.length : tokenLength, expiration: expirations.only,
      priority: priorities.only)
    tokenKey = MadeTokens(seed: plan.seed).key
    drawKey = SplitMix64.mixed(plan.seed ^ 0x6e75_6d62_6572_0002)
  }

  /// Codes of rules that `WorkloadPlan.payloadFaults` can name.
  package static let faultyPayloadCodes = PayloadBank.codes

  /// The number in the stream of this run's notification `index` (from 0).
  @inline(__always)
  package func number(of index: Int) -> UInt64 {
    UInt64(truncatingIfNeeded: index) &* segments &+ segment
  }

  /// The fault of notification `number`; `nil` without one.
  package func fault(of number: UInt64) -> WorkloadPlan.Fault? {
    if let replay { return replay.isMissingToken(Int(truncatingIfNeeded: number)) ? .missingToken : nil }
    return faults.draw(NotificationRandom(of: number, drawKey)[.fault])
  }

  /// Whether payloads have times in them that are known only when they are written.
  var hasTimes: Bool { replay == nil && payloads.hasTimes }

  /// Whether some notifications have tokens of lengths that a gateway may refuse.
  var hasBadTokenSizes: Bool {
    replay?.hasUnusualTokenSizes
      ?? ((hasTokenList ? tokenList.lengths != 32...32 : tokenLength != 32) || plan.faults[.tokenSize, default: 0] > 0
        || plan.payloadFaults["token_length", default: 0] > 0)
  }

  /// Whether all payloads without deliberate faults are as short as every gateway accepts: at most 256 bytes in
  /// commands 0 and 1, 2,048 in command 2. Then a payload that is refused for its size has a deliberate fault.
  var hasUsualPayloadSizes: Bool {
    guard replay == nil else { return false }
    let hasShortest = plan.commands.parts.contains { $0.value < 2 && $0.weight > 0 }
    let most = hasShortest ? 256 : 2_048
    return payloads.longestSize <= most && faultyPayloads.allSatisfy { $0.longest <= most }
  }

  /// Notification `number`, without the framing of a protocol. A recorded one has its frame already.
  @inline(__always)
  package func push(_ number: UInt64) -> WorkloadPush {
    let random = NotificationRandom(of: number, drawKey)
    let push = WorkloadPush(
      number, random, tokenLength: usualTokenLength(of: number), payloadLength: payloads.size(of: number, random),
      expiration: expirations.draw(random[.expiration]),
      priority: payloads.priority(random) ?? priorities.draw(random[.priority]))
    guard let fault = faults.draw(random[.fault]) else { return push }
    return faulty(push, fault)
  }

  /// Out of line, because few notifications have a fault.
  @inline(never)
  private func faulty(_ push: WorkloadPush, _ fault: WorkloadPlan.Fault) -> WorkloadPush {
    guard fault == .payload else { return WorkloadPush(push, fault) }
    let bank = faults.bank(of: push.random[.fault])
    return WorkloadPush(
      push, faultyPayloads[bank][push.random[.text]], bank: bank,
      drawnPriority: priorities.draw(push.random[.priority]))
  }

  /// The payload that breaks a rule, with the fields of the frame that it belongs into; `nil` for other notifications.
  @inline(__always)
  func sample(of push: WorkloadPush) -> PayloadBank.FaultySample? {
    push.bank.map { faultyPayloads[$0][push.random[.text]] }
  }

  /// Writes `payloadLength` bytes.
  @inline(__always)
  func writePayload(of push: WorkloadPush, into output: inout ByteWriter) {
    guard let length = push.payloadLength else { return }
    if let sample = sample(of: push) { return output.write(sample.payload.rawBytes) }
    payloads.write(
      push.number, length - push.extraPayload, extra: push.extraPayload, push.random, into: &output)
  }

  /// Writes `tokenLength` bytes.
  ///
  /// A made token number i is a pure function of the seed and i, and no two are the same; which one a notification goes
  /// to is drawn.
  @inline(__always)
  func writeToken(of push: WorkloadPush, into output: inout ByteWriter) {
    guard let length = push.tokenLength else { return }
    if let token = sample(of: push)?.token { return output.write(token.rawBytes) }
    writeToken(
      numbered: drawnToken(push.number, push.random), length: length, isInvalid: push.hasInvalidToken, into: &output)
  }

  /// The made token of a notification without a fault.
  @inline(__always)
  func writeMadeToken(of push: WorkloadPush, into output: inout ByteWriter) {
    writeMadeToken(numbered: madeToken(push.random), length: tokenLength, isInvalid: false, into: &output)
  }

  /// The listed token of a notification without a fault.
  func writeListedToken(of push: WorkloadPush, into output: inout ByteWriter) {
    let token = tokenList.token(ofNotification: push.number)
    tokenList.write(token, length: tokenList.length(ofToken: token), isInvalid: false, into: &output)
  }

  /// Bytes of the token of notification `number` without a fault.
  @inline(__always)
  private func usualTokenLength(of number: UInt64) -> Int {
    hasTokenList ? listedTokenLength(of: number) : tokenLength
  }

  /// Out of line, so that the code for made tokens stays short.
  @inline(never)
  private func listedTokenLength(of number: UInt64) -> Int {
    tokenList.length(ofToken: tokenList.token(ofNotification: number))
  }

  /// The number of the token that notification `number` goes to without a fault: the next one of a list, or drawn.
  @inline(__always)
  func drawnToken(_ number: UInt64, _ random: NotificationRandom) -> UInt64 {
    hasTokenList ? tokenList.token(ofNotification: number) : madeToken(random)
  }

  @inline(__always)
  private func madeToken(_ random: NotificationRandom) -> UInt64 {
    random[.token].multipliedFullWidth(by: tokens).high
  }

  /// As `MadeTokens` does for 32 bytes. `Workload.number(ofToken:)` computes the number from the bytes that are written here.
  @inline(__always)
  func writeToken(numbered index: UInt64, length: Int, isInvalid: Bool, into output: inout ByteWriter) {
    guard hasTokenList else {
      return writeMadeToken(numbered: index, length: length, isInvalid: isInvalid, into: &output)
    }
    tokenList.write(index, length: length, isInvalid: isInvalid, into: &output)
  }

  @inline(__always)
  private func writeMadeToken(numbered index: UInt64, length: Int, isInvalid: Bool, into output: inout ByteWriter) {
    var state = tokenKey &+ index &* MadeTokens.stride
    var left = length
    if isInvalid {
      output.write(bigEndian: DeviceToken.invalidPrefix)
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
