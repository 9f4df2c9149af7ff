import Bytes
import PacketCapture
import Payload

/// The times of each token's latest pushes that wake the app and show nothing, to find pushes that a device defers:
/// more than three within an hour, for a Newsstand app more than one within a day.
struct BackgroundPushes {
  /// The times of a token's latest three pushes, in ascending order.
  private var latest: [UInt64: [Int64]] = [:]
  private let limit: Int

  /// - Parameter limit: the number of tokens that are tracked; further tokens are not.
  init(limit: Int) { self.limit = limit }

  /// Notes a push; `true` if it exceeds the device's budget.
  mutating func note(_ token: RawSpan, at time: Timestamp, kind: PayloadKind) -> Bool {
    guard time.isKnown else { return false }
    let key = ContentDigest.seed(from: token)
    var times = latest[key] ?? []
    if times.isEmpty, latest.count >= limit { return false }
    let place = times.firstIndex { $0 > time.nanoseconds } ?? times.count
    times.insert(time.nanoseconds, at: place)
    let (further, seconds): (Int, Int64) = kind == .newsstand ? (1, 86_400) : (3, 3_600)
    let isTooOften = (0..<max(0, times.count - further)).contains { first in
      // The interval includes the new push.
      (first...first + further).contains(place) && times[first + further] - times[first] < seconds * 1_000_000_000
    }
    if times.count > 3 { times.removeFirst() }
    latest[key] = times
    return isTooOften
  }
}
