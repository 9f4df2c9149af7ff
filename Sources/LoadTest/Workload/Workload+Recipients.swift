import Bytes
import Measurement
import PushModel

/// Which of the plan's tokens a notification goes to, and which one a token is. Of made tokens both are computed, so no
/// list of them is kept.
extension Workload {
  /// The number of the token that notification `number` is drawn to have, from 0; a fault may replace the token.
  @inline(__always)
  func drawnToken(of number: UInt64) -> UInt64 {
    drawnToken(number, NotificationRandom(of: number, drawKey))
  }

  /// Whether notification `number` goes to one of these tokens.
  @inline(__always)
  func goes(_ number: UInt64, to tokens: ListedTokens) -> Bool {
    tokens.contains(drawnToken(of: number)) && hasDrawnToken(number)
  }

  /// The number of the token that notification `number` goes to; `nil`: none of the plan's tokens.
  func recipient(of number: UInt64) -> UInt64? { hasDrawnToken(number) ? drawnToken(of: number) : nil }

  /// Out of line, because few notifications are asked for.
  @inline(never)
  private func hasDrawnToken(_ number: UInt64) -> Bool {
    // A recorded notification has a token of its own.
    guard replay == nil else { return false }
    switch fault(of: number) {
    case nil, .missingPayload, .oversize: return true
    case .invalidToken, .tokenSize, .missingToken, .malformed: return false
    case .payload: return sample(of: push(number))?.token == nil
    }
  }

  /// The number of a token of the plan; `nil` for any other token.
  func number(ofToken token: RawSpan) -> UInt64? {
    guard replay == nil else { return nil }
    if hasTokenList { return tokenList.number(of: token) }
    guard token.byteCount == tokenLength else { return nil }
    let state: UInt64
    let bits: UInt64
    if tokenLength < 8 {
      var value: UInt64 = 0
      for offset in 0..<tokenLength { value = value << 8 | UInt64(token.byte(at: offset)) }
      (state, bits) = (value, (1 << UInt64(8 * tokenLength)) - 1)
    } else {
      (state, bits) = (SplitMix64.unmixed(token.uint64(at: 0)) &- SplitMix64.step, .max)
    }
    let number = ((state &- tokenKey) &* SplitMix64.inverse(ofOdd: MadeTokens.stride)) & bits
    guard number < tokens else { return nil }
    // The first bytes determine the number; the others have to be that token's as well.
    var whole = ByteWriter(capacity: tokenLength)
    writeToken(numbered: number, length: tokenLength, isInvalid: false, into: &whole)
    return whole.bytes.begins(with: token) ? number : nil
  }
}
