import APNSProtocol
import Bytes

/// The stream of notifications of a run: number n is a pure function of the plan's seed and n.
///
/// So nothing has to be kept for a resend: the notification is made again. Numbers count from 0 over the whole stream,
/// of which a run may send a segment; `number(of:)` gives those of this run. Encoding goes straight into the batch, and
/// allocates nothing.
public struct Workload: Sendable {
  /// Tokens that begin with these eight bytes are made to be refused; the simulator's devices have no such.
  public static let invalidTokenPrefix: UInt64 = 0x0bad_0bad_0bad_0bad

  /// Why a plan cannot be followed.
  public struct PlanError: Error, Sendable, Equatable, CustomStringConvertible {
    public let description: String
    init(_ description: String) { self.description = description }
  }

  public let plan: WorkloadPlan
  let commands: Lottery<UInt8>
  let priorities: Lottery<UInt8?>
  let expirations: Lottery<WorkloadPlan.Expiration>
  let payloads: PayloadMaker
  let faults: FaultLottery
  private let tokenKey: UInt64
  private let drawKey: UInt64

  /// - Parameter start: UNIX seconds that `{time}` in a template stands for.
  public init(_ plan: WorkloadPlan, start: Int = 0) throws(PlanError) {
    guard plan.tokens > 0 else { throw PlanError("there has to be at least one token") }
    guard (1...65_535).contains(plan.tokenLength) else { throw PlanError("a token has 1 to 65535 bytes") }
    guard plan.segments > 0, (0..<plan.segments).contains(plan.segment) else {
      throw PlanError("segment \(plan.segment + 1) of \(plan.segments) does not exist")
    }
    for part in plan.commands.parts where part.value > 2 { throw PlanError("there is no command \(part.value)") }
    self.plan = plan
    commands = try Lottery(plan.commands, "commands")
    priorities = try Lottery(plan.priorities, "priorities")
    expirations = try Lottery(plan.expirations, "expirations")
    payloads = try PayloadMaker(plan.payload, start: start)
    faults = try FaultLottery(plan.faults)
    tokenKey = Self.mixed(plan.seed ^ 0x746f_6b65_6e00_0001)
    drawKey = Self.mixed(plan.seed ^ 0x6e75_6d62_6572_0002)
  }

  /// The number in the stream of this run's notification `index` (from 0).
  @inline(__always)
  public func number(of index: Int) -> UInt64 {
    UInt64(index) &* UInt64(plan.segments) &+ UInt64(plan.segment)
  }

  /// The identifier that notification `number` carries: 1 to 2³² − 2, then again from 1, because a gateway answers 0
  /// when it does not know, and the last one is kept for markers.
  @inline(__always)
  public static func identifier(of number: UInt64) -> UInt32 { UInt32(truncatingIfNeeded: number % 0xffff_fffe) &+ 1 }

  /// What is wrong with notification `number`; `nil` if nothing is.
  public func fault(of number: UInt64) -> WorkloadPlan.Fault? {
    faults.isEmpty ? nil : faults.draw(Self.mixed(draw(number) &+ 3))
  }

  @inline(__always)
  private func draw(_ number: UInt64) -> UInt64 { Self.mixed(drawKey &+ number &* 0x9e37_79b9_7f4a_7c15) }

  /// Writes notification `number`.
  public func encode(_ number: UInt64, into output: inout ByteWriter) {
    let draw = draw(number)
    if !faults.isEmpty, let fault = faults.draw(Self.mixed(draw &+ 3)) {
      return encode(number, draw, fault, into: &output)
    }
    encode(number, draw, Variation(tokenLength: plan.tokenLength), into: &output)
  }

  /// How a notification differs from a usual one.
  struct Variation {
    var tokenLength: Int
    var hasToken = true
    var hasPayload = true
    var hasInvalidToken = false
    var extraPayload = 0
  }

  /// ```
  /// 0  00 | token length u16 | token | payload length u16 | payload
  /// 1  01 | identifier 4 | expiration 4 | as command 0
  /// 2  02 | length u32 | 01 length token | 02 length payload | 03 0004 identifier | 04 0004 expiration | 05 0001 priority
  /// ```
  func encode(_ number: UInt64, _ draw: UInt64, _ variation: Variation, into output: inout ByteWriter) {
    let command = commands.isSingle ? commands.first : commands.draw(Self.mixed(draw &+ 4))
    let size = payloads.size(Self.mixed(draw &+ 5))
    let payloadLength = variation.hasPayload ? size + variation.extraPayload : 0
    let tokenLength = variation.hasToken ? variation.tokenLength : 0
    let identifier = Self.identifier(of: number)
    output.reserve(64 + tokenLength + payloadLength)
    if command == 2 {
      let priority = priorities.isSingle ? priorities.first : priorities.draw(Self.mixed(draw &+ 6))
      let expiration = expirations.isSingle ? expirations.first : expirations.draw(Self.mixed(draw &+ 7))
      var length = 7
      if variation.hasToken { length += 3 + tokenLength }
      if variation.hasPayload { length += 3 + payloadLength }
      if case .at = expiration { length += 7 }
      if priority != nil { length += 4 }
      output.write(2)
      output.write(bigEndian: UInt32(truncatingIfNeeded: length))
      if variation.hasToken {
        output.write(1)
        output.write(bigEndian: UInt16(truncatingIfNeeded: tokenLength))
        writeToken(draw, tokenLength, variation.hasInvalidToken, into: &output)
      }
      if variation.hasPayload {
        output.write(2)
        output.write(bigEndian: UInt16(truncatingIfNeeded: payloadLength))
        payloads.write(number, size: size, extra: variation.extraPayload, draw, into: &output)
      }
      output.write(3)
      output.write(bigEndian: UInt16(4))
      output.write(bigEndian: identifier)
      if case .at(let time) = expiration {
        output.write(4)
        output.write(bigEndian: UInt16(4))
        output.write(bigEndian: time)
      }
      if let priority {
        output.write(5)
        output.write(bigEndian: UInt16(1))
        output.write(priority)
      }
      return
    }
    output.write(command)
    if command == 1 {
      output.write(bigEndian: identifier)
      let expiration = expirations.isSingle ? expirations.first : expirations.draw(Self.mixed(draw &+ 7))
      if case .at(let time) = expiration { output.write(bigEndian: time) } else { output.write(bigEndian: UInt32(0)) }
    }
    output.write(bigEndian: UInt16(truncatingIfNeeded: tokenLength))
    if tokenLength > 0 { writeToken(draw, tokenLength, variation.hasInvalidToken, into: &output) }
    output.write(bigEndian: UInt16(truncatingIfNeeded: payloadLength))
    if payloadLength > 0 { payloads.write(number, size: size, extra: variation.extraPayload, draw, into: &output) }
  }

  /// Token number i is a pure function of the seed and i; which one a notification goes to is drawn.
  @inline(__always)
  private func writeToken(_ draw: UInt64, _ length: Int, _ isInvalid: Bool, into output: inout ByteWriter) {
    let index = draw.multipliedFullWidth(by: UInt64(plan.tokens)).high
    var state = tokenKey &+ index &* 0xd134_2543_de82_ef95
    var written = 0
    if isInvalid {
      output.write(bigEndian: Self.invalidTokenPrefix)
      written = 8
    }
    while written + 8 <= length {
      state &+= 0x9e37_79b9_7f4a_7c15
      output.write(bigEndian: Self.mixed(state))
      written += 8
    }
    while written < length {
      state &+= 0x9e37_79b9_7f4a_7c15
      output.write(UInt8(truncatingIfNeeded: Self.mixed(state)))
      written += 1
    }
  }

  /// The finaliser of SplitMix64.
  @inline(__always)
  static func mixed(_ value: UInt64) -> UInt64 {
    var mixed = value
    mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
    return mixed ^ (mixed >> 31)
  }
}
