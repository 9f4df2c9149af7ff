import Bytes

/// Notifications with something wrong.
extension Workload {
  /// Longer than the largest payload of any certificate.
  private static let oversize = 4_096

  @inline(never)
  func encode(_ number: UInt64, _ draw: UInt64, _ fault: WorkloadPlan.Fault, into output: inout ByteWriter) {
    var variation = Variation(tokenLength: plan.tokenLength)
    switch fault {
    case .invalidToken:
      variation.hasInvalidToken = true
      variation.tokenLength = max(8, plan.tokenLength)
    case .tokenSize: variation.tokenLength = plan.tokenLength > 1 ? plan.tokenLength - 1 : 2
    case .missingToken: variation.hasToken = false
    case .missingPayload: variation.hasPayload = false
    case .oversize: variation.extraPayload = Self.oversize
    case .malformed:
      malformed(number, into: &output)
      return
    }
    encode(number, draw, variation, into: &output)
  }

  /// A frame whose outer length is right and whose last item claims more than there is, with its identifier before it.
  private func malformed(_ number: UInt64, into output: inout ByteWriter) {
    output.write(2)
    output.write(bigEndian: UInt32(7 + 3 + 4))
    output.write(3)
    output.write(bigEndian: UInt16(4))
    output.write(bigEndian: Self.identifier(of: number))
    output.write(1)
    output.write(bigEndian: UInt16(32))
    output.write(bigEndian: UInt32(0))
  }
}
