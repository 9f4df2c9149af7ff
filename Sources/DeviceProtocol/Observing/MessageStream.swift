import Bytes

/// The messages of one direction of a recorded connection, from pieces with gaps.
///
/// ```
///            gap, or bytes that are no length and object
///   ┌───────┐ ─────────────────────────────────────────► ┌───────────┐
///   │ reads │                                            │ searches  │
///   └───────┘ ◄───────────────────────────────────────── └───────────┘
///            a message, and behind it another or the end
/// ```
///
/// Lengths have a byte that is zero, and a JSON object has none. So no message that is searched for lies inside of
/// another one, and the search is linear in the number of bytes.
public struct MessageStream: Sendable {
  /// What is in a range of the direction's bytes. The ranges of all events follow each other without overlap, and with
  /// the gaps they are all bytes.
  public enum Event: Sendable, Equatable {
    /// A message with its length.
    case message(ObservedMessage, at: Range<Int>)
    /// A body that is no message of the protocol, with its length. What follows is read on.
    case malformed(MessageError, at: Range<Int>)
    /// Bytes of which it is not known which messages they are of.
    case unread(Cause, at: Range<Int>)

    /// Where it is.
    public var range: Range<Int> {
      switch self {
      case .message(_, let range), .malformed(_, let range), .unread(_, let range): range
      }
    }
  }

  /// Why bytes were not read.
  public enum Cause: String, Sendable, CaseIterable {
    /// Bytes are missing before or behind them.
    case gap
    /// No length and object began where a message has to begin.
    case framing
    /// The direction ends within a message.
    case end
  }

  /// The longest body that can be told from one that is searched for, in bytes: one of its length's bytes is zero.
  public static let longestBody = (1 << 24) - 1

  /// The protocol of the messages.
  public let kind: MessageProtocol
  /// The offset of the next byte.
  public private(set) var offset: Int
  private var framing: MessageFraming
  private var reader = ObservedMessageReader()
  /// The bytes before `offset` that no event has had.
  private var held: [UInt8] = []
  /// Why a beginning is searched for; `nil`: a message begins with what is held.
  private var search: Cause?
  /// Bytes before those held that the search has left behind.
  private var passed = 0
  /// As many bytes have to be held before a place can be judged.
  private var needed = 0

  /// Makes the stream of a direction.
  ///
  /// - Parameters:
  ///   - kind: the protocol, which `MessageProtocol.recognition` tells.
  ///   - offset: the offset of the first byte.
  ///   - isFromStart: a message begins with the first byte; otherwise a beginning is searched for.
  ///   - longestBody: the longest body in bytes, 2 to `longestBody`. At most twice as much is held.
  public init(_ kind: MessageProtocol, offset: Int = 0, isFromStart: Bool = true, longestBody: Int = 64 << 10) {
    (self.kind, self.offset, search) = (kind, offset, isFromStart ? nil : .gap)
    framing = MessageFraming(
      order: kind == .devices ? .bigEndian : nil, longestBody: min(longestBody, Self.longestBody))
  }

  /// The order of the lengths; `nil`: no message has told it yet.
  public var order: MessageFraming.ByteOrder? { framing.order }

  /// Bytes that it holds until more comes.
  public var heldBytes: Int { held.count }

  /// Reads the next bytes, and gives what they complete.
  ///
  /// - Parameters:
  ///   - bytes: the bytes at `offset`.
  ///   - take: is called with each event in the order of offsets.
  public mutating func read(_ bytes: RawSpan, _ take: (Event) -> Void) {
    held.append(contentsOf: Array(copying: bytes))
    offset += bytes.byteCount
    advance(isLast: false, take)
  }

  /// Notes bytes that are missing, behind which a beginning is searched for.
  ///
  /// - Parameters:
  ///   - length: the number of missing bytes, at least 1.
  ///   - take: is called with what was held.
  public mutating func gap(_ length: Int, _ take: (Event) -> Void) {
    giveUp(search ?? .gap, take)
    offset += max(0, length)
    search = .gap
  }

  /// Gives up what is held, behind which a beginning is searched for.
  ///
  /// - Parameter take: is called with what was held.
  public mutating func giveUp(_ take: (Event) -> Void) {
    giveUp(search ?? .gap, take)
    search = .gap
  }

  /// Gives what is left when the direction has ended.
  ///
  /// - Parameters:
  ///   - isWhole: the end was recorded, so that a last message in a search is proven by it.
  ///   - take: is called with each event in the order of offsets.
  public mutating func finish(isWhole: Bool, _ take: (Event) -> Void) {
    needed = 0
    if isWhole { advance(isLast: true, take) }
    giveUp(search ?? .end, take)
  }

  private mutating func giveUp(_ cause: Cause, _ take: (Event) -> Void) {
    let length = passed + held.count
    if length > 0 { take(.unread(cause, at: offset - length..<offset)) }
    held.removeAll(keepingCapacity: true)
    (passed, needed) = (0, 0)
  }

  // MARK: what is held

  private mutating func advance(isLast: Bool, _ take: (Event) -> Void) {
    guard held.count >= needed else { return }
    var bytes: [UInt8] = []
    swap(&bytes, &held)
    let first = offset - bytes.count
    var place = 0
    // Where the bytes begin that no event has had.
    var start = -passed
    while true {
      if let cause = search {
        guard findMessage(bytes.rawBytes, from: &place, isLast: isLast) else { break }
        if place > start { take(.unread(cause, at: first + start..<first + place)) }
        search = nil
      }
      place = readMessages(bytes.rawBytes, from: place, at: first, take)
      start = place
      if search == nil { break }
    }
    passed = place - start
    needed = max(0, needed - place)
    bytes.removeFirst(place)
    held = bytes
  }

  /// Reads messages until more bytes are needed, or bytes are none. Returns where.
  private mutating func readMessages(
    _ bytes: RawSpan, from start: Int, at first: Int, _ take: (Event) -> Void
  ) -> Int {
    var place = start
    while true {
      let range: Range<Int>?
      do { range = try framing.next(bytes.extracting(place..<bytes.byteCount)) } catch {
        search = .framing
        return place
      }
      guard let range else { return place }
      let all = first + place..<first + place + range.upperBound
      do {
        let body = bytes.extracting(place + range.lowerBound..<place + range.upperBound)
        take(.message(try reader.read(body, as: kind), at: all))
      } catch { take(.malformed(error, at: all)) }
      place += range.upperBound
    }
  }

  // MARK: search

  private enum Candidate {
    case no
    case needs(Int)
    case whole(Int)
  }

  /// Moves to a place at which a message is proven to begin; `false`: to one that later bytes may prove.
  private mutating func findMessage(_ bytes: RawSpan, from place: inout Int, isLast: Bool) -> Bool {
    let orders = framing.order.map { [$0] } ?? MessageFraming.ByteOrder.allCases
    needed = 0
    while place < bytes.byteCount {
      var missing: Int?
      for order in orders {
        switch proof(bytes, at: place, order, isLast: isLast) {
        case .no: break
        case .needs(let count): missing = min(missing ?? count, count)
        case .whole:
          // A length that both orders read tells nothing.
          if bytes.uint32(at: place, bigEndian: true) != bytes.uint32(at: place, bigEndian: false) {
            framing = MessageFraming(order: order, longestBody: framing.longestBody)
          }
          return true
        }
      }
      if let missing, !isLast {
        needed = missing
        return false
      }
      place += 1
    }
    return false
  }

  /// A message at a place, and behind it another or the end.
  private mutating func proof(
    _ bytes: RawSpan, at place: Int, _ order: MessageFraming.ByteOrder, isLast: Bool
  ) -> Candidate {
    let first = candidate(bytes, at: place, order)
    guard case .whole(let end) = first else { return first }
    return isLast && end == bytes.byteCount ? first : candidate(bytes, at: end, order)
  }

  private mutating func candidate(_ bytes: RawSpan, at place: Int, _ order: MessageFraming.ByteOrder) -> Candidate {
    let body = place + MessageFraming.headerLength
    guard body < bytes.byteCount else { return .needs(body + 1) }
    let length = Int(bytes.uint32(at: place, bigEndian: order == .bigEndian))
    guard length >= 2, length <= framing.longestBody, bytes.byte(at: body) == UInt8(ascii: "{") else { return .no }
    guard body + length <= bytes.byteCount else { return .needs(body + length) }
    let message = try? reader.read(bytes.extracting(body..<body + length), as: kind)
    return message == nil ? .no : .whole(body + length)
  }
}
