import Bytes
import GatewaySimulator
import TestSupport
import Testing

/// The rules of `OfflineStore` said in the plainest way: a list of what waits, searched from its beginning.
struct OfflineModel {
  struct Waiting {
    var topic: UInt32
    var token: [UInt8]
    var collapseID: [UInt8]
    var payload: [UInt8]
    var lastMoment: Int64
    var onlineAt: Int64
  }

  let options: OfflineStore.Options
  private(set) var counts = OfflineStore.Counts()
  /// The oldest first.
  private(set) var waiting: [Waiting] = []
  private var clock = Int64.min

  init(_ options: OfflineStore.Options) { self.options = options }

  var bytes: Int { waiting.reduce(0) { $0 + $1.token.count + $1.collapseID.count + $1.payload.count } }

  mutating func accept(
    _ topic: UInt32, _ token: [UInt8], _ payload: [UInt8], _ expiration: UInt32?, _ collapseID: [UInt8], _ now: Int64
  ) {
    advance(now)
    counts.accepted += 1
    let lastMoment = min(clock + options.maximumAge, expiration.map { Int64($0) * 1_000 } ?? Int64.max)
    if expiration == 0 || lastMoment < clock {
      counts.expired += 1
      return
    }
    let size = token.count + payload.count + collapseID.count
    if size > options.maximumBytes || options.maximumNotifications == 0 {
      counts.dropped += 1
      return
    }
    var onlineAt = options.onlineAfter.map { clock + $0 } ?? Int64.max
    // A device comes online once for all that waits for it.
    if let other = waiting.first(where: { $0.topic == topic && $0.token == token }) { onlineAt = other.onlineAt }
    if let earlier = waiting.firstIndex(where: {
      $0.topic == topic && $0.token == token && $0.collapseID == collapseID
    }) {
      waiting.remove(at: earlier)
      counts.coalesced += 1
    }
    while waiting.count >= options.maximumNotifications || bytes + size > options.maximumBytes {
      waiting.removeFirst()
      counts.dropped += 1
    }
    waiting.append(
      Waiting(
        topic: topic, token: token, collapseID: collapseID, payload: payload, lastMoment: lastMoment,
        onlineAt: onlineAt))
    counts.stored = waiting.count
  }

  mutating func advance(_ now: Int64) {
    clock = max(clock, now)
    let before = waiting
    waiting = before.filter { $0.onlineAt > clock && $0.lastMoment >= clock }
    for gone in before where gone.onlineAt <= clock || gone.lastMoment < clock {
      if gone.onlineAt <= gone.lastMoment { counts.delivered += 1 } else { counts.expired += 1 }
    }
    counts.stored = waiting.count
  }

  mutating func settle(_ topic: UInt32, _ token: [UInt8], isDelivered: Bool, _ now: Int64) {
    advance(now)
    let before = waiting.count
    waiting.removeAll { $0.topic == topic && $0.token == token }
    if isDelivered { counts.delivered += before - waiting.count } else { counts.dropped += before - waiting.count }
    counts.stored = waiting.count
  }

  mutating func comeOnline(_ now: Int64) {
    advance(now)
    counts.delivered += waiting.count
    waiting = []
    counts.stored = 0
  }
}

extension OfflineStore {
  mutating func accept(
    _ token: [UInt8], _ payload: [UInt8] = [1], topic: UInt32 = 1, expiration: UInt32? = nil,
    collapseID: [UInt8] = [], now: Int64
  ) {
    accept(
      topic: topic, token: token.rawBytes, payload: payload.rawBytes, expiration: expiration, collapseID: collapseID,
      now: now)
  }

  var isBalanced: Bool {
    let known = counts.delivered + counts.coalesced + counts.expired + counts.dropped + counts.stored
    return counts.accepted == known
  }
}

@Suite("Offline store")
struct OfflineStoreTests {
  private let token = [UInt8](repeating: 9, count: 32)

  @Test("Of a device and topic the latest waits, and is delivered when the device comes online")
  func coalescing() {
    var store = OfflineStore(.init(onlineAfter: 1_000))
    store.accept(token, [1], now: 5_000)
    store.accept(token, [2], now: 5_900)
    store.accept(token, [3], topic: 2, now: 5_950)
    #expect(store.latest(topic: 1, token: token.rawBytes) == [2])
    #expect(store.latest(topic: 2, token: token.rawBytes) == [3])
    #expect(store.counts.coalesced == 1 && store.counts.stored == 2)
    store.advance(to: 5_999)
    #expect(store.counts.delivered == 0)
    // After the *first* one was stored; then it is offline again.
    store.advance(to: 6_000)
    #expect(store.counts.delivered == 1 && store.counts.stored == 1)
    #expect(store.latest(topic: 1, token: token.rawBytes) == nil)
    store.accept(token, [4], now: 6_001)
    store.advance(to: 7_000)
    #expect(store.counts.delivered == 2 && store.counts.stored == 1)
    store.advance(to: 7_001)
    #expect(store.counts.delivered == 3 && store.counts.stored == 0 && store.bytes == 0)
    #expect(store.isBalanced)
  }

  @Test("The latest of each collapse identifier waits, beside the latest without one; the device comes online once")
  func collapseIDs() {
    var store = OfflineStore(.init(onlineAfter: 1_000))
    store.accept(token, [1], collapseID: [7], now: 5_000)
    store.accept(token, [2], collapseID: [8], now: 5_100)
    store.accept(token, [3], now: 5_200)
    store.accept(token, [4], collapseID: [7], now: 5_300)
    store.accept(token, [5], topic: 2, collapseID: [7], now: 5_400)
    #expect(store.counts.coalesced == 1 && store.counts.stored == 4)
    #expect(store.latest(topic: 1, token: token.rawBytes, collapseID: [7]) == [4])
    #expect(store.latest(topic: 1, token: token.rawBytes, collapseID: [8]) == [2])
    #expect(store.latest(topic: 1, token: token.rawBytes) == [3])
    store.advance(to: 5_999)
    #expect(store.counts.delivered == 0)
    store.advance(to: 6_000)
    #expect(store.counts.delivered == 3 && store.counts.stored == 1)
    // The device is away again: another time begins.
    store.accept(token, [6], collapseID: [8], now: 6_100)
    store.advance(to: 7_099)
    #expect(store.counts.delivered == 4)
    store.advance(to: 7_100)
    #expect(store.counts.delivered == 5 && store.counts.stored == 0 && store.bytes == 0)
  }

  @Test("Expiration: 0 is never stored, the past expires at once, the second itself is still good")
  func expiration() {
    var store = OfflineStore()
    store.accept(token, expiration: 0, now: 10_500)
    store.accept(token, expiration: 10, now: 10_500)
    #expect(store.counts == counts(accepted: 2, expired: 2))
    store.accept(token, [7], expiration: 11, now: 10_500)
    // An earlier one stays when the next is not stored.
    store.accept(token, [8], expiration: 0, now: 10_600)
    #expect(store.latest(topic: 1, token: token.rawBytes) == [7])
    store.advance(to: 11_000)
    #expect(store.counts.stored == 1)
    store.advance(to: 11_001)
    #expect(store.counts == counts(accepted: 4, expired: 4))
  }

  @Test("Without an expiration, or with one far away, a notification waits as long as any may")
  func maximumAge() {
    var store = OfflineStore(.init(maximumAge: 500))
    store.accept([1], expiration: nil, now: 100)
    store.accept([2], expiration: .max, now: 101)
    store.advance(to: 600)
    #expect(store.counts.stored == 2)
    store.advance(to: 601)
    #expect(store.counts.stored == 1)
    store.advance(to: 602)
    #expect(store.counts == counts(accepted: 2, expired: 2))
  }

  @Test("What is due before the next notification arrives is dealt with before it")
  func dueFirst() {
    var store = OfflineStore(.init(onlineAfter: 10))
    store.accept(token, now: 0)
    store.accept(token, now: 10)
    #expect(store.counts.delivered == 1 && store.counts.coalesced == 0 && store.counts.stored == 1)
  }

  @Test("A clock that goes back is the clock before")
  func backwards() {
    var store = OfflineStore(.init(onlineAfter: 10))
    store.accept(token, now: 1_000)
    store.accept(token, expiration: 2, now: 0)
    #expect(store.counts.coalesced == 1)
    store.advance(to: 1_009)
    #expect(store.counts.delivered == 0)
    store.advance(to: 1_010)
    #expect(store.counts.delivered == 1)
  }

  @Test("A full store drops the oldest; a coalesced one counts from its last storing")
  func fullByNumber() {
    var store = OfflineStore(.init(maximumNotifications: 2))
    store.accept([1], now: 0)
    store.accept([2], now: 1)
    store.accept([1], now: 2)
    store.accept([3], now: 3)
    #expect(store.latest(topic: 1, token: ([2] as [UInt8]).rawBytes) == nil)
    #expect(store.latest(topic: 1, token: ([1] as [UInt8]).rawBytes) == [1])
    #expect(store.counts.dropped == 1 && store.counts.coalesced == 1 && store.counts.stored == 2)
    #expect(store.isBalanced)
  }

  @Test("Bytes are a limit too, and what is larger than all of it drops nothing else")
  func fullByBytes() {
    var store = OfflineStore(.init(maximumBytes: 10))
    store.accept([1], [1, 2, 3, 4], now: 0)
    store.accept([2], [1, 2, 3, 4], now: 0)
    #expect(store.bytes == 10)
    store.accept([3], Array(repeating: 0, count: 10), now: 0)
    #expect(store.counts == counts(accepted: 3, dropped: 1, stored: 2))
    store.accept([3], Array(repeating: 0, count: 9), now: 0)
    #expect(store.counts == counts(accepted: 4, dropped: 3, stored: 1))
    #expect(store.bytes == 10)
  }

  @Test("Everybody comes online at once")
  func comeOnline() {
    var store = OfflineStore(.init(onlineAfter: 1_000))
    for number in 0..<100 as Range<UInt8> { store.accept([number], expiration: number < 10 ? 1 : nil, now: 900) }
    store.comeOnline(now: 1_500)
    #expect(store.counts == counts(accepted: 100, delivered: 90, expired: 10))
    store.accept([1], now: 1_600)
    store.advance(to: 1_900)
    #expect(store.counts.stored == 1)
    store.advance(to: 2_600)
    #expect(store.counts.delivered == 91 && store.counts.stored == 0)
  }

  @Test("The model and the store agree after every step", arguments: seeds(10, of: 60))
  func law(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    let options = OfflineStore.Options(
      onlineAfter: random.happens(oneIn: 3) ? nil : Int64(random.number(0...5_000)),
      maximumAge: random.happens(oneIn: 2) ? Int64(random.number(0...4_000)) : 86_400_000,
      maximumNotifications: random.happens(oneIn: 2) ? random.number(0...12) : 1_000,
      maximumBytes: random.happens(oneIn: 2) ? random.number(0...400) : 1_000_000)
    var store = OfflineStore(options)
    var model = OfflineModel(options)
    let tokens = (0..<random.number(1...40)).map { _ in random.bytes(random.pick([32, 32, 32, 0, 1, 31, 33, 100])) }
    var now: Int64 = 100_000
    for step in 0..<600 {
      now += Int64(random.pick([0, 0, 1, 10, 100, 1_000, -500]))
      switch random.number(1...20) {
      case 1:
        store.comeOnline(now: now)
        model.comeOnline(now)
      case 2...4:
        store.advance(to: now)
        model.advance(now)
      case 5:
        let (topic, token, isDelivered) = (
          UInt32(random.number(1...2)), random.pick(tokens), random.happens(oneIn: 2)
        )
        store.settle(topic: topic, token: token.rawBytes, isDelivered: isDelivered, now: now)
        model.settle(topic, token, isDelivered: isDelivered, now)
      default:
        let second = Int(now / 1_000)
        let expiration = random.pick(
          [nil, nil, 0, UInt32(second - 1), UInt32(second), UInt32(second + random.number(1...5)), UInt32.max])
        let (topic, token) = (UInt32(random.number(1...2)), random.pick(tokens))
        let payload = random.bytes(random.number(0...40))
        let collapseID = random.pick([[], [], [1], [2], [1, 2]]) as [UInt8]
        store.accept(token, payload, topic: topic, expiration: expiration, collapseID: collapseID, now: now)
        model.accept(topic, token, payload, expiration, collapseID, now)
      }
      #expect(store.counts == model.counts, "step \(step)")
      #expect(store.bytes == model.bytes, "step \(step)")
      #expect(store.isBalanced, "step \(step)")
      for waiting in model.waiting {
        #expect(
          store.latest(topic: waiting.topic, token: waiting.token.rawBytes, collapseID: waiting.collapseID)
            == waiting.payload, "step \(step)")
      }
    }
  }

  @Test("Each accepted notification has one outcome, of the kind that is counted", arguments: seeds(10, of: 60))
  func outcomes(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    let options = OfflineStore.Options(
      onlineAfter: random.happens(oneIn: 2) ? Int64(random.number(1...5_000)) : nil, maximumAge: 20_000,
      maximumNotifications: random.number(1...20), maximumBytes: random.number(100...2_000))
    var store = OfflineStore(options, keepsOutcomes: true)
    var told: [DeviceOutcome] = []
    var tokens: [[UInt8]] = []
    var now: Int64 = 1_000_000
    for index in 0..<400 {
      now += Int64(random.number(0...400))
      let token = [UInt8](repeating: UInt8(random.number(1...30)), count: random.pick([32, 8]))
      tokens.append(token)
      let expiration = random.pick([nil, 0, UInt32(now / 1_000) + UInt32(random.number(0...9))])
      let payload = [UInt8](repeating: 1, count: random.number(0...200))
      store.accept(
        topic: UInt32(random.number(0...1)), token: token.rawBytes, payload: payload.rawBytes, expiration: expiration,
        collapseID: random.pick([[], [1], [2]]), now: now, origin: .init(connection: 7, index: index))
      told += store.takeOutcomes()
      switch random.number(0...60) {
      case 0: store.comeOnline(now: now)
      case 1: store.removeAll(now: now)
      case 2...6:
        let some = random.pick(tokens)
        store.settle(topic: 0, token: some.rawBytes, isDelivered: random.happens(oneIn: 2), now: now)
      default: store.advance(to: now)
      }
      told += store.takeOutcomes()
      // What is told is over: what is due is told at its time, and that has come.
      #expect(told.allSatisfy { $0.time <= now })
    }
    store.close(now: now)
    told += store.takeOutcomes()
    // What would be due later stays.
    let waiting = store.counts.stored
    store.advance(to: now + 1_000_000)
    #expect(store.takeOutcomes().isEmpty && store.counts.stored == waiting)
    func count(_ kind: DeviceOutcome.Kind) -> Int { told.count { $0.kind == kind } }
    let counts = store.counts
    #expect(count(.delivered) == counts.delivered && count(.coalesced) == counts.coalesced)
    #expect(count(.expired) == counts.expired && count(.dropped) == counts.dropped && count(.stored) == counts.stored)
    #expect(told.map(\.origin.index).sorted() == Array(0..<400))
    #expect(told.allSatisfy { $0.token == tokens[$0.origin.index] && $0.origin.connection == 7 })
  }

  @Test("Expirations that only shrink leave no entries behind")
  func shrinking() {
    var store = OfflineStore()
    for number in 0..<200_000 { store.accept(token, expiration: UInt32(1_000_000 - number), now: 0) }
    #expect(store.counts.coalesced == 199_999 && store.counts.stored == 1)
    store.advance(to: 800_001_000)
    #expect(store.counts.stored == 1)
    store.advance(to: 800_001_001)
    #expect(store.counts.expired == 1)
  }

  private func counts(
    accepted: Int, delivered: Int = 0, expired: Int = 0, dropped: Int = 0, stored: Int = 0
  ) -> OfflineStore.Counts {
    var counts = OfflineStore.Counts()
    (counts.accepted, counts.delivered, counts.expired) = (accepted, delivered, expired)
    (counts.dropped, counts.stored) = (dropped, stored)
    return counts
  }
}
