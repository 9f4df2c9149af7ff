import Bytes
import HTTP2
import PacketCapture
import ProviderAPI
import PushModel
import Records

/// The HTTP/2 connection of a provider: its session, and what its records need besides.
final class HTTP2Reader {
  /// A full TLS record: the next one may continue a frame.
  private static let fullRecord = 16_384
  /// Bytes missing in a gap among which a full record may have been; less than that, because lengths of gaps are
  /// approximate with some cipher suites.
  private static let mayHoldFullRecord = 14_000
  /// The longest reason of a rejection that is counted by its name.
  private static let longestReason = 128

  var session: ProviderSession
  /// The provider tokens so far, by number.
  private(set) var tokens: [ProviderToken?] = []
  /// Fates that are decided, and were not passed on.
  var fates = DecidedFates()
  /// Requests of channel management without an answer, by stream.
  private var waiting: [UInt32: ChannelRequestRecord] = [:]
  /// The bytes of their texts, which table entries may make long.
  private var waitingBytes = 0
  /// The most that wait.
  private let maximumWaiting: Int
  private var rejections = RejectionCounts()
  /// How often each side's header table was lost.
  private var tableLosses = (client: 0, server: 0)
  private var pings = PingTimes()
  /// Why the bytes are missing that the session learns of now.
  var gapReason = GapRecord.Reason.lost
  /// The stream offsets of the next bytes.
  private(set) var offsets = StreamOffsets()
  /// Whether the next TLS record of a side begins at a frame, as far as is known.
  private var startsFrame = (client: true, server: true)

  convenience init(isFromStart: Bool, limits: ProviderSession.Limits) {
    self.init(ProviderSession(isFromStart: isFromStart, limits: limits), limits)
  }

  /// Reads a connection on, whose counts begin here.
  init(_ session: ProviderSession, offsets: StreamOffsets = StreamOffsets(), _ limits: ProviderSession.Limits) {
    (self.session, self.offsets) = (session, offsets)
    maximumWaiting = limits.connection.openStreams
    rejections.limit = limits.rejectionReasons
  }

  /// The use of the connection.
  var service: Service {
    switch session.service {
    case .gateway: .gateway
    case .channels: .channels
    case .other, nil: .other
    }
  }

  /// Bytes that it holds until more comes.
  var heldBytes: Int {
    session.heldBytes + fates.heldBytes + rejections.heldBytes + tokens.count * MemoryLayout<ProviderToken?>.stride
      + waiting.count * 2 * MemoryLayout<(UInt32, ChannelRequestRecord)>.stride + waitingBytes
  }

  /// Gives up what the session has given up, and the names of rejections.
  func giveUp() {
    tokens = []
    rejections.giveUp()
  }

  /// Notes a piece of a side, and returns whether a TLS record begins with it that begins with a frame.
  func begin(_ count: Int, _ side: HTTP2Side, at offset: Int) -> Bool {
    let next = count < Self.fullRecord
    switch side {
    case .client:
      defer { (offsets.client, startsFrame.client) = (offset + count, next) }
      return startsFrame.client
    case .server:
      defer { (offsets.server, startsFrame.server) = (offset + count, next) }
      return startsFrame.server
    }
  }

  /// Notes missing bytes of a side.
  func skip(_ length: Int, _ side: HTTP2Side, at offset: Int) {
    let next = length < Self.mayHoldFullRecord
    switch side {
    case .client: (offsets.client, startsFrame.client) = (offset + length, next)
    case .server: (offsets.server, startsFrame.server) = (offset + length, next)
    }
  }

  // MARK: events

  func note(_ token: Result<ProviderToken, ProviderToken.Problem>, number: Int) {
    while tokens.count < number { tokens.append(nil) }
    tokens[number - 1] = try? token.get()
  }

  func token(_ number: Int?) -> ProviderToken? {
    guard let number, tokens.indices.contains(number - 1) else { return nil }
    return tokens[number - 1]
  }

  func note(ping data: UInt64, isAcknowledgement: Bool, _ side: HTTP2Side, _ time: Timestamp) {
    switch (side, isAcknowledgement) {
    case (.client, false): pings.note(sent: data, time)
    case (.server, true): pings.note(answer: data, time)
    case (.client, true), (.server, false): break
    }
  }

  /// Frames of either side may be missing.
  func noteLoss() { pings.miss() }

  func noteTableLoss(_ side: HTTP2Side) {
    if side == .client { tableLosses.client += 1 } else { tableLosses.server += 1 }
  }

  /// Counts a rejected notification.
  func noteRejection(_ status: Int, _ reason: String?) {
    if let reason, reason.utf8.count <= Self.longestReason {
      rejections.note(reason)
    } else {
      rejections.note(String(status))
    }
  }

  /// Keeps a request until its answer comes. Returns one that is to be passed on without, beyond the limit.
  func wait(_ record: ChannelRequestRecord, _ stream: UInt32) -> ChannelRequestRecord? {
    guard waiting.count < maximumWaiting else { return record }
    if let replaced = waiting.updateValue(record, forKey: stream) { waitingBytes -= replaced.textBytes }
    waitingBytes += record.textBytes
    return nil
  }

  /// The request of channel management that waits on a stream.
  func takeWaiting(_ stream: UInt32) -> ChannelRequestRecord? {
    guard !waiting.isEmpty, let record = waiting.removeValue(forKey: stream) else { return nil }
    waitingBytes -= record.textBytes
    return record
  }

  /// All that wait, in the order of their streams.
  func takeAllWaiting() -> [ChannelRequestRecord] {
    defer { (waiting, waitingBytes) = ([:], 0) }
    return waiting.sorted { $0.key < $1.key }.map(\.value)
  }

  /// The part of the connection's record that only HTTP/2 has.
  var summary: HTTP2Summary {
    var summary = HTTP2Summary()
    summary.responses = session.responses
    summary.rejections = rejections.sorted
    summary.providerTokens = session.areProviderTokensCounted ? session.providerTokens.count : nil
    summary.openStreamsMaximum = session.openStreamsMaximum
    summary.firstStreamLimit = session.firstStreamLimit
    summary.lastStreamLimit = session.streamLimit
    (summary.goAways, summary.resets) = (session.goAways, session.resets)
    (summary.literalTokens, summary.literalTokenBytes) = session.literalTokens
    summary.priorityFrames = session.priorityFrames
    summary.pings = pings.summary
    (summary.clientTableLosses, summary.serverTableLosses) = tableLosses
    return summary
  }
}

/// The client's PING frames, and the time to their answers.
///
/// An answer repeats the data of its PING, and clients often send the same data each time: once frames may be missing,
/// no answer is known to be of the PING before it.
private struct PingTimes {
  /// The most that wait for an answer. Beyond it the oldest has none.
  private static let limit = 64

  private(set) var summary = HTTP2Summary.Pings()
  private var open: [(data: UInt64, time: Timestamp)] = []
  private var mayMiss = false

  mutating func note(sent data: UInt64, _ time: Timestamp) {
    summary.sent += 1
    guard !mayMiss else { return }
    if open.count == Self.limit { open.removeFirst() }
    open.append((data, time))
  }

  mutating func note(answer data: UInt64, _ time: Timestamp) {
    // Any answer shows that the server is there.
    if time.isKnown, time > summary.lastAnswer { summary.lastAnswer = time }
    guard let place = open.firstIndex(where: { $0.data == data }) else { return }
    summary.answered += 1
    let sent = open.remove(at: place)
    guard let length = time.nanoseconds(since: sent.time), length >= 0 else { return }
    summary.leastNanoseconds = min(summary.leastNanoseconds ?? length, length)
    summary.greatestNanoseconds = max(summary.greatestNanoseconds ?? length, length)
  }

  mutating func miss() { (open, mayMiss) = ([], true) }
}

/// Rejected notifications by reason.
private struct RejectionCounts {
  /// The name that counts those without one of their own.
  private static let rest = "other"

  /// The most reasons that are counted apart.
  var limit = 0
  private var counts: [String: Int] = [:]
  private var textBytes = 0

  var heldBytes: Int { counts.count * 2 * MemoryLayout<(String, Int)>.stride + textBytes }

  mutating func note(_ name: String) {
    let isKnown = counts[name] != nil
    guard isKnown || counts.count < limit else {
      counts[Self.rest, default: 0] += 1
      return
    }
    if !isKnown { textBytes += name.utf8.count }
    counts[name, default: 0] += 1
  }

  /// Gives up the names.
  mutating func giveUp() {
    guard counts.contains(where: { $0.key != Self.rest }) else { return }
    (counts, textBytes) = ([Self.rest: counts.values.reduce(0, +)], 0)
  }

  var sorted: [HTTP2Summary.NamedCount] {
    counts.sorted { $0.key < $1.key }.map { .init(name: $0.key, count: $0.value) }
  }
}

/// Fates in the order in which streams are closed, which are passed on in the order of their notifications.
struct DecidedFates {
  private struct Range {
    var last: Int
    var fate: Fate
    var cause: DiscardCause?
  }

  /// All before this one were passed on.
  private var next = 0
  /// Decided ones from `next` on, in order; the first may not be `next`.
  private var ranges: [(first: Int, range: Range)] = []

  var heldBytes: Int { ranges.count * MemoryLayout<(Int, Range)>.stride }

  /// Adds a fate.
  mutating func note(_ notification: Int, _ fate: Fate, _ cause: DiscardCause?) {
    var (low, high) = (0, ranges.count)
    // Most are the latest, or follow it.
    if let last = ranges.last, last.first < notification { low = high }
    while low < high {
      let middle = (low + high) / 2
      if ranges[middle].first < notification { low = middle + 1 } else { high = middle }
    }
    if low > 0, extends(ranges[low - 1].range, notification, fate, cause) {
      ranges[low - 1].range.last = notification
      guard low < ranges.count, ranges[low].first == notification + 1, ranges[low].range.fate == fate,
        ranges[low].range.cause == cause
      else { return }
      ranges[low - 1].range.last = ranges[low].range.last
      ranges.remove(at: low)
    } else if low < ranges.count, ranges[low].first == notification + 1, ranges[low].range.fate == fate,
      ranges[low].range.cause == cause
    {
      ranges[low].first = notification
    } else {
      ranges.insert((notification, Range(last: notification, fate: fate, cause: cause)), at: low)
    }
  }

  private func extends(_ range: Range, _ notification: Int, _ fate: Fate, _ cause: DiscardCause?) -> Bool {
    range.last + 1 == notification && range.fate == fate && range.cause == cause
  }

  /// Passes on those that no undecided one precedes.
  mutating func release(_ connection: Int, _ pass: (FateRecord) -> Void) {
    var count = 0
    while count < ranges.count, ranges[count].first == next {
      let range = ranges[count].range
      pass(
        FateRecord(connection: connection, first: next, last: range.last, fate: range.fate, cause: range.cause))
      next = range.last + 1
      count += 1
    }
    ranges.removeFirst(count)
  }
}

extension ChannelRequestRecord {
  /// The bytes of the texts that the client chose.
  fileprivate var textBytes: Int {
    [bundle, channelID, requestID].reduce(0) { $0 + ($1?.utf8.count ?? 0) }
  }
}
