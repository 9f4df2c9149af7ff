/// One notification of a workload, apart from how a protocol frames it.
///
/// A plain value that borrows and allocates nothing. A `Push` of PushModel does not fit here: it is a view of bytes that
/// exist already, while a sender first asks how long token and payload are, and then has the workload write both
/// straight into its output (`Workload.writeToken`, `Workload.writePayload`).
package struct WorkloadPush: Sendable {
  /// Bytes that an oversize payload has beyond the drawn size: together they exceed the limit of every gateway.
  static let oversize = 4_096

  /// The number in the stream.
  let number: UInt64
  let random: NotificationRandom
  /// `nil` without a fault.
  package let fault: WorkloadPlan.Fault?
  /// Bytes; `nil` without a token.
  package fileprivate(set) var tokenLength: Int?
  /// Bytes; `nil` without a payload.
  package fileprivate(set) var payloadLength: Int?
  /// UNIX seconds; `nil` where it is left out.
  package fileprivate(set) var expiration: UInt32?
  /// `nil` where it is left out.
  package fileprivate(set) var priority: UInt8?
  /// The token begins with the bytes of `DeviceToken.invalidPrefix`.
  private(set) var hasInvalidToken = false
  /// Bytes of the payload beyond the drawn size.
  private(set) var extraPayload = 0
  /// The bank that the payload is drawn from, when it breaks a rule.
  private(set) var bank: Int?

  /// - Parameter payloadLength: of the drawn size, before the fault changes it.
  @inline(__always)
  init(
    _ number: UInt64, _ random: NotificationRandom, tokenLength: Int, payloadLength: Int, expiration: UInt32?,
    priority: UInt8?
  ) {
    (self.number, self.random, fault) = (number, random, nil)
    (self.tokenLength, self.payloadLength) = (tokenLength, payloadLength)
    (self.expiration, self.priority) = (expiration, priority)
  }

  /// The same notification with a fault. A malformed notification keeps all its fields: the fault is in the frame.
  init(_ push: WorkloadPush, _ fault: WorkloadPlan.Fault) {
    (number, random, self.fault) = (push.number, push.random, fault)
    (tokenLength, payloadLength) = (push.tokenLength, push.payloadLength)
    (expiration, priority) = (push.expiration, push.priority)
    switch fault {
    case .invalidToken: hasInvalidToken = true
    case .tokenSize: tokenLength = push.tokenLength.map { $0 > 1 ? $0 - 1 : 2 }
    case .missingToken: tokenLength = nil
    case .missingPayload: payloadLength = nil
    case .oversize:
      extraPayload = Self.oversize
      payloadLength = push.payloadLength.map { $0 + Self.oversize }
    case .malformed, .payload: break
    }
  }

  /// The same notification with the payload, and the fields of its frame, that break a rule.
  init(_ push: WorkloadPush, _ sample: PayloadBank.FaultySample, bank: Int, drawnPriority: UInt8?) {
    self.init(push, .payload)
    self.bank = bank
    payloadLength = sample.payload.count
    if let token = sample.token { tokenLength = token.count }
    expiration = sample.expiration ?? expiration
    priority = sample.hasPriority ? sample.priority ?? drawnPriority : nil
  }
}
