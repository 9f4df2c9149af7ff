import BinaryProtocol
import Bytes

/// How the binary protocol frames the pushes of a workload: with commands that are drawn, and from a template if all
/// notifications have the same fields.
struct BinaryFraming: ~Copyable, Sendable {
  fileprivate let commands: WeightedChoice<UInt8>
  /// `nil` when notifications differ in more than the template allows.
  fileprivate let template: FrameTemplate?

  /// - Parameters:
  ///   - tokenLength: that of every token; `nil` when tokens have several.
  ///   - expiration: the only one that the plan has; `nil` when it is drawn from several.
  ///   - priority: likewise.
  init(
    _ commands: WeightedChoice<UInt8>, _ payloads: PayloadMaker, tokenLength: Int?, expiration: UInt32??,
    priority: UInt8??
  ) {
    self.commands = commands
    guard commands.only == 2, payloads.isOfLetters, let tokenLength, case .some(let expiration?) = expiration,
      case .some(let priority?) = priority
    else {
      template = nil
      return
    }
    template = FrameTemplate(
      longest: payloads.longestSize, tokenLength: tokenLength, expiration: expiration, priority: priority)
  }
}

extension Workload {
  /// The identifier that notification `number` carries: 1 to 2³² − 2, then again from 1. A gateway answers 0 when it does
  /// not know which notification it means, and the last identifier is that of markers.
  @inline(__always)
  package static func identifier(of number: UInt64) -> UInt32 { UInt32(truncatingIfNeeded: number % 0xffff_fffe) &+ 1 }

  /// Writes the frame of notification `number`, and returns its fault.
  @discardableResult
  package func encode(_ number: UInt64, into output: inout ByteWriter) -> WorkloadPlan.Fault? {
    if replay != nil { return encodeRecorded(number, into: &output) }
    let push = push(number)
    guard let fault = push.fault else {
      encodeUsual(push, into: &output)
      return nil
    }
    encodeFaulty(push, fault, into: &output)
    return fault
  }

  /// Out of line, so that the code for generated notifications stays short.
  @inline(never)
  private func encodeRecorded(_ number: UInt64, into output: inout ByteWriter) -> WorkloadPlan.Fault? {
    replay?.encode(Int(truncatingIfNeeded: number), identifier: Self.identifier(of: number), into: &output)
    return fault(of: number)
  }

  @inline(__always)
  private func encodeUsual(_ push: WorkloadPush, into output: inout ByteWriter) {
    if hasTokenList { return encodeListed(push, into: &output) }
    encodeUsual(push, into: &output) { writeMadeToken(of: push, into: &$0) }
  }

  /// Out of line, so that the code for made tokens stays short.
  @inline(never)
  private func encodeListed(_ push: WorkloadPush, into output: inout ByteWriter) {
    encodeUsual(push, into: &output) { writeListedToken(of: push, into: &$0) }
  }

  @inline(__always)
  private func encodeUsual(
    _ push: WorkloadPush, into output: inout ByteWriter, token: (inout ByteWriter) -> Void
  ) {
    switch framing.template {
    case .some(let template):
      template.write(
        size: push.payloadLength ?? 0, push.random, identifier: Self.identifier(of: push.number), into: &output,
        token: token)
    case nil: encodeFields(of: push, into: &output)
    }
  }

  /// Out of line, because few notifications have a fault.
  @inline(never)
  private func encodeFaulty(_ push: WorkloadPush, _ fault: WorkloadPlan.Fault, into output: inout ByteWriter) {
    if fault == .malformed {
      Self.encodeMalformed(push.number, into: &output)
    } else {
      encodeFields(of: push, into: &output)
    }
  }

  private func encodeFields(of push: WorkloadPush, into output: inout ByteWriter) {
    let command = sample(of: push)?.command ?? framing.commands.draw(push.random[.command])
    let identifier = Self.identifier(of: push.number)
    output.reserve(64 + (push.tokenLength ?? 0) + (push.payloadLength ?? 0))
    guard command == 2 else {
      return BinaryFrame.encodeUnframed(
        numbers: command == 1 ? (identifier, push.expiration ?? 0) : nil, tokenLength: push.tokenLength ?? 0,
        payloadLength: push.payloadLength ?? 0, into: &output, token: { writeToken(of: push, into: &$0) },
        payload: { writePayload(of: push, into: &$0) })
    }
    BinaryFrame.encodeFramed(
      tokenLength: push.tokenLength, payloadLength: push.payloadLength, identifier: identifier,
      expiration: push.expiration, priority: push.priority, into: &output,
      token: { writeToken(of: push, into: &$0) }, payload: { writePayload(of: push, into: &$0) })
  }

  /// A frame of command 2 whose length is right and whose last item claims more bytes than there are; the identifier
  /// precedes that item, so a gateway can name the notification.
  private static func encodeMalformed(_ number: UInt64, into output: inout ByteWriter) {
    BinaryFrame.writeFrameHeader(length: 2 * (FrameItem.headerLength + 4), into: &output)
    BinaryFrame.writeItemHeader(.notificationIdentifier, length: 4, into: &output)
    output.write(bigEndian: identifier(of: number))
    BinaryFrame.writeItemHeader(.deviceToken, length: 32, into: &output)
    output.write(bigEndian: UInt32(0))
  }
}
