import Bytes
import PacketCapture

/// The latest notifications of all connections in the order in which they were seen: a ring, in which each entry knows
/// the distance to its connection's previous one.
///
/// One ring for all connections, for locality.
struct SentHistory {
  private struct Entry {
    var digest: UInt64
    var time: Timestamp
    var connection: UInt32
    /// The notification's index; the highest bit is set if it is selected, the next one if it is a request.
    var markedIndex: UInt32
    var expiration: UInt32
    /// The distance to the connection's previous entry; 0: none.
    var distance: UInt32
  }

  private static let selected: UInt32 = 1 << 31
  private static let request: UInt32 = 1 << 30
  private static let index: UInt32 = request - 1

  /// A power of two.
  private let maximum: Int
  private var entries: [Entry] = []
  private var beginnings: Beginnings
  private var repeats: RepeatWindow
  /// The number of notifications ever noted, and of those that were compared with earlier ones.
  private(set) var total = 0
  private var checked = 0
  /// The initial capacity at most: it costs nothing until it is used, and growing would copy the entries.
  fileprivate static let usualMaximum = 1 << 16
  /// The number of notifications between noting one and comparing it, so that its prefetched memory has arrived.
  static let lag = 16
  /// The packets and losses of the latest `lag` notifications.
  private var fresh = InlineArray<16, (packet: Int, loss: Int)>(repeating: (0, -1))
  /// The shortest time that the ring spanned when it was full.
  private var shortestSpan = Int64.max

  init(maximum: Int) {
    var power = 2 * Self.lag
    while power < maximum { power *= 2 }
    self.maximum = power
    beginnings = Beginnings(maximum: power)
    repeats = RepeatWindow(window: power)
  }

  /// Notes the next notification of a connection; `latest` is the place of its previous one, and becomes this one's.
  ///
  /// - Parameter loss: the error response that discards it; -1: none.
  @inline(__always)
  mutating func append(
    _ sent: SentNotification, token: RawSpan, payload: RawSpan, packet: Int, loss: Int, latest: inout Int
  ) {
    let distance = latest < 0 ? 0 : total - latest
    let entry = Entry(
      digest: sent.digest, time: sent.time, connection: UInt32(truncatingIfNeeded: sent.connection),
      markedIndex: UInt32(truncatingIfNeeded: sent.index) & Self.index | (sent.isSelected ? Self.selected : 0)
        | (sent.isRequest ? Self.request : 0),
      expiration: sent.expiration,
      distance: distance < maximum ? UInt32(distance) : 0)
    let slot = total & (maximum - 1)
    repeats.prepare(sent.digest)
    if entries.count < maximum {
      if entries.isEmpty { entries.reserveCapacity(min(maximum, Self.usualMaximum)) }
      entries.append(entry)
    } else {
      shortestSpan = min(shortestSpan, sent.time.nanoseconds &- entries[slot].time.nanoseconds)
      entries[slot] = entry
    }
    beginnings.note(token, payload, at: slot)
    fresh[total & (Self.lag - 1)] = (packet, loss)
    latest = total
    total += 1
  }

  /// Notifications that `next` has not returned; it wants to be called when these are `lag`.
  @inline(__always)
  var waiting: Int { total - checked }

  /// Returns the next notification, with the latest earlier sending of the same one; `nil` if the window has none. Call
  /// it only while `waiting` is above 0.
  @inline(__always)
  mutating func next() -> (sent: SentNotification, earlier: SentNotification?, packet: Int, loss: Int) {
    let (packet, loss) = fresh[checked & (Self.lag - 1)]
    let digest = entries[checked & (maximum - 1)].digest
    let before = digest != 0 ? repeats.note(digest, at: checked) : -1
    let earlier = before >= 0 ? find(digest, at: before) : nil
    let sent = notification(at: checked)
    checked += 1
    return (sent, earlier, packet, loss)
  }

  @inline(never)
  private func find(_ digest: UInt64, at place: Int) -> SentNotification? {
    guard total - place <= entries.count, entries[place & (maximum - 1)].digest == digest else { return nil }
    return notification(at: place)
  }

  @inline(__always)
  private func notification(at place: Int) -> SentNotification {
    let entry = entries[place & (maximum - 1)]
    return SentNotification(
      digest: entry.digest, time: entry.time, connection: Int(entry.connection),
      index: Int(entry.markedIndex & Self.index), expiration: entry.expiration,
      isSelected: entry.markedIndex & Self.selected != 0, isRequest: entry.markedIndex & Self.request != 0)
  }

  /// The remembered notifications of a connection from index `lower` on, the latest first, each with its place for
  /// `beginning`.
  func forEach(from lower: Int, latest: Int, _ body: (SentNotification, _ place: Int) -> Void) {
    var place = latest
    while place >= 0 && place >= total - entries.count {
      let entry = entries[place & (maximum - 1)]
      guard Int(entry.markedIndex & Self.index) >= lower else { return }
      body(notification(at: place), place)
      guard entry.distance > 0 else { return }
      place -= Int(entry.distance)
    }
  }

  /// The beginning of a remembered notification's token and payload.
  func beginning(at place: Int) -> NotificationBeginning { beginnings[place & (maximum - 1)] }

  /// The number of earlier notifications among which the same one is found.
  var window: Int { min(maximum - Self.lag, repeats.reach) }
  /// Whether all sendings of the recording were compared.
  var coversAll: Bool { total <= min(maximum, repeats.reach) }
  /// The shortest time that the window spanned.
  var spanNanoseconds: Int64? { shortestSpan == .max ? nil : max(0, shortestSpan) }
}

/// The beginnings of the latest notifications, at the places of their ring.
struct Beginnings {
  /// Token, payload, and their lengths in two bytes each.
  private static let stride = 96
  private static let lengthOffset = NotificationBeginning.tokenBytes + NotificationBeginning.payloadBytes

  private let maximum: Int
  private var bytes: [UInt8] = []

  init(maximum: Int) { self.maximum = maximum }

  @inline(__always)
  mutating func note(_ token: RawSpan, _ payload: RawSpan, at slot: Int) {
    let start = slot * Self.stride
    if start >= bytes.count { grow() }
    let lengths = UInt32(min(token.byteCount, 0xffff)) << 16 | UInt32(min(payload.byteCount, 0xffff))
    let isUsual = token.byteCount == NotificationBeginning.tokenBytes && payload.byteCount >= 64
    // Safe: `grow` made room for this slot, and no copy exceeds its part of the slot. The part with the lengths is
    // written last.
    unsafe bytes.withUnsafeMutableBytes { ring in
      let place = unsafe UnsafeMutableRawBufferPointer(rebasing: ring[start..<start + Self.stride])
      let rest = unsafe UnsafeMutableRawBufferPointer(rebasing: place[NotificationBeginning.tokenBytes...])
      if isUsual {
        // Of constant lengths, which takes three instructions instead of two calls.
        let first = unsafe token.unsafeLoadUnaligned(fromByteOffset: 0, as: SIMD32<UInt8>.self)
        unsafe place.storeBytes(of: first, as: SIMD32<UInt8>.self)
        let second = unsafe payload.unsafeLoadUnaligned(fromByteOffset: 0, as: SIMD64<UInt8>.self)
        unsafe rest.storeBytes(of: second, as: SIMD64<UInt8>.self)
      } else {
        let kept = min(token.byteCount, NotificationBeginning.tokenBytes)
        unsafe token.withUnsafeBytes { unsafe place.copyMemory(from: .init(rebasing: $0[..<kept])) }
        let keptPayload = min(payload.byteCount, NotificationBeginning.payloadBytes)
        unsafe payload.withUnsafeBytes { unsafe rest.copyMemory(from: .init(rebasing: $0[..<keptPayload])) }
      }
      unsafe place.storeBytes(of: lengths, toByteOffset: Self.lengthOffset, as: UInt32.self)
    }
  }

  /// Makes room in steps, so that a small recording needs little memory.
  @inline(never)
  private mutating func grow() {
    if bytes.isEmpty { bytes.reserveCapacity(min(maximum, SentHistory.usualMaximum) * Self.stride) }
    let slots = min(maximum - bytes.count / Self.stride, 1_024)
    bytes += [UInt8](repeating: 0, count: slots * Self.stride)
  }

  subscript(slot: Int) -> NotificationBeginning {
    let place = bytes[slot * Self.stride..<(slot + 1) * Self.stride]
    let first = place.startIndex
    // Safe: a place has 96 bytes, the lengths are its last part, and any bits are an integer.
    let lengths = unsafe place.withUnsafeBytes {
      unsafe $0.loadUnaligned(fromByteOffset: Self.lengthOffset, as: UInt32.self)
    }
    let (token, payload) = (Int(lengths >> 16), Int(lengths & 0xffff))
    let payloadStart = first + NotificationBeginning.tokenBytes
    return NotificationBeginning(
      token: Array(place[first..<first + min(token, NotificationBeginning.tokenBytes)]), tokenLength: token,
      payload: Array(place[payloadStart..<payloadStart + min(payload, NotificationBeginning.payloadBytes)]),
      payloadLength: payload)
  }
}
