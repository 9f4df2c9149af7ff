import BinaryProtocol
import Bytes

extension Workload {
  /// How a notification differs from a normal one.
  struct Variation {
    /// Longer than the longest payload that any gateway takes; it comes on top of the usual one.
    static let oversize = 4_096

    /// 0 when it has none.
    var tokenLength: Int
    var hasPayload = true
    var hasInvalidToken = false
    var extraPayload = 0

    var hasToken: Bool { tokenLength > 0 }

    @inline(__always)
    init(tokenLength: Int) { self.tokenLength = tokenLength }

    /// `nil` for a notification that has nothing of a usual one, or another payload.
    @inline(never)
    init?(_ fault: WorkloadPlan.Fault, tokenLength: Int) {
      self.tokenLength = tokenLength
      switch fault {
      case .invalidToken: hasInvalidToken = true
      case .tokenSize: self.tokenLength = tokenLength > 1 ? tokenLength - 1 : 2
      case .missingToken: self.tokenLength = 0
      case .missingPayload: hasPayload = false
      case .oversize: extraPayload = Self.oversize
      case .malformed, .payload: return nil
      }
    }
  }

  /// A command-2 frame whose length is right and whose last item claims more than there is, with its identifier before.
  @inline(never)
  static func encodeMalformed(_ number: UInt64, into output: inout ByteWriter) {
    BinaryFrame.writeFrameHeader(length: 2 * (FrameItem.headerLength + 4), into: &output)
    BinaryFrame.writeItemHeader(.notificationIdentifier, length: 4, into: &output)
    output.write(bigEndian: identifier(of: number))
    BinaryFrame.writeItemHeader(.deviceToken, length: 32, into: &output)
    output.write(bigEndian: UInt32(0))
  }
}
