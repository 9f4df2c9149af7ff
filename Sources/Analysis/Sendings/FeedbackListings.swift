import BinaryProtocol
import Bytes
import PacketCapture

/// The tokens that a feedback service listed, and when for the first time.
struct FeedbackListings {
  private let limit: Int
  private var times: [UInt64: Timestamp] = [:]
  private var filter = DigestFilter()

  /// - Parameter limit: tokens that are remembered.
  init(limit: Int) { self.limit = limit }

  mutating func note(_ token: RawSpan, at time: Timestamp) {
    guard time.isKnown, token.byteCount > 0 else { return }
    let digest = ContentDigest.seed(from: token)
    if let known = times[digest] {
      times[digest] = min(known, time)
    } else if times.count < limit {
      times[digest] = time
      filter.insert(digest)
    }
  }

  /// Whether a token was listed before a time.
  @inline(__always)
  func has(_ token: RawSpan, before time: Timestamp) -> Bool {
    if times.isEmpty { return false }
    return find(token, before: time)
  }

  @inline(never)
  private func find(_ token: RawSpan, before time: Timestamp) -> Bool {
    let digest = ContentDigest.seed(from: token)
    guard filter.mayHave(digest), let listed = times[digest] else { return false }
    // An unknown time is before all others.
    return listed < time
  }
}
