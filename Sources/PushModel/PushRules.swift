import Bytes

/// A fault of a push that can be seen without knowing devices and certificates.
public enum PushFault: Sendable, Hashable {
  /// No token, or no payload: an empty one counts as missing.
  case missingToken, missingPayload
  /// The token is shorter or longer than a device's.
  case tokenSize
  /// The payload is longer than allowed.
  case payloadSize
  /// The push requests immediate delivery, and has nothing to show or play.
  case silentAtOnce
}

/// The limits that a provider service sets for every push, which depend on the year and the certificate.
public struct PushRules: Sendable, Equatable {
  /// Lengths of a token in bytes. Documented: 32, up to 100 from 2018 on.
  public var tokenLengths: ClosedRange<Int>
  /// The longest payload in bytes. Documented: 256, 2,048 from June 2014 on, 4,096 for VoIP certificates.
  public var maximumPayloadLength: Int
  /// Whether a push that is to be delivered at once needs something to show or play.
  public var checksPriority: Bool

  /// Makes the rules of a gateway. The defaults are those documented in 2015, without VoIP certificates.
  public init(tokenLengths: ClosedRange<Int> = 32...32, maximumPayloadLength: Int = 2_048, checksPriority: Bool = true)
  {
    self.tokenLengths = tokenLengths
    self.maximumPayloadLength = maximumPayloadLength
    self.checksPriority = checksPriority
  }

  /// The first fault of a push; `nil` if it breaks no rule.
  ///
  /// - Complexity: O(1), except for a payload that may be silent, which is scanned.
  @inlinable @inline(__always)
  public func fault(of push: borrowing Push) -> PushFault? {
    let (token, payload) = (push.fields.token.length, push.fields.payload.length)
    // One comparison decides that all lengths are valid; the broken rule is determined out of line.
    if token < tokenLengths.lowerBound || token > tokenLengths.upperBound || token == 0 || payload == 0
      || payload > maximumPayloadLength
    {
      return fault(tokenLength: token, payloadLength: payload)
    }
    return checksPriority && push.isSilentAtOnce ? .silentAtOnce : nil
  }

  @usableFromInline @inline(never)
  func fault(tokenLength: Int, payloadLength: Int) -> PushFault {
    if tokenLength == 0 { return .missingToken }
    if payloadLength == 0 { return .missingPayload }
    return tokenLengths.contains(tokenLength) ? .payloadSize : .tokenSize
  }
}

extension Push {
  /// Whether the push requests immediate delivery but has nothing to show or play. That is an error with priority 10,
  /// which commands 0 and 1 of the binary protocol imply.
  @inlinable @inline(__always)
  public var isSilentAtOnce: Bool {
    (priority == 10 || fields.command != .framed) && PayloadRules.isSilent(payload)
  }
}
