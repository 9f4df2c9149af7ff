import BinaryProtocol
import Bytes
import PacketCapture
import ProviderAPI
import PushModel

/// A sink that keeps the fates of all notifications of a recording: a first pass fills it, and a second pass writes
/// each fate with its notification.
///
/// Consecutive notifications with the same fate are one range of 8 bytes: up to three for a connection, more only after
/// several error responses.
public struct FateIndex: ConnectionSink, Sendable {
  /// A range of one connection. It begins where the previous one ends; a connection's first range begins with
  /// notification 0.
  private struct Entry {
    private let bits: UInt64

    init(end: Int, _ fate: Fate, _ cause: DiscardCause?) {
      let cause = cause.flatMap { Self.causes.firstIndex(of: $0) }.map { $0 + 1 } ?? 0
      bits = UInt64(end) << 4 | UInt64(cause << 2 | Self.code(of: fate))
    }

    var end: Int { Int(bits >> 4) }
    var fate: Fate { Self.fates[Int(bits & 3)] }
    var cause: DiscardCause? { bits >> 2 & 3 == 0 ? nil : Self.causes[Int(bits >> 2 & 3) - 1] }

    private static let fates = [Fate.accepted, .rejected, .discarded, .unknown]
    private static let causes = [DiscardCause.refusedStream, .goAway, .incomplete]

    private static func code(of fate: Fate) -> Int {
      switch fate {
      case .accepted: 0
      case .rejected: 1
      case .discarded: 2
      case .unknown: 3
      }
    }
  }

  /// The default of the number of ranges kept: 4,194,304, which take 32 MiB.
  public static let usualMaximumRanges = 1 << 22

  private let maximumRanges: Int
  /// The place of a connection's ranges among the entries, by its number less 1; empty when they are not kept.
  private var places: [(first: UInt32, count: UInt32)] = []
  private var entries: [Entry] = []
  /// Ranges of connections that have not ended.
  private var open: [Int: [Entry]] = [:]
  private var openRanges = 0
  /// Answers to notifications of the provider API.
  private(set) var answers: AnswerIndex
  /// The number of connections whose fates are not kept because of the limit.
  public private(set) var connectionsNotKept = 0
  /// The number of answers that are not kept because of the limit, or because their reason is too long or one too many.
  public var answersNotKept: Int { answers.notKept }

  /// - Parameter maximumRanges: kept ranges, 8 bytes each; the fates of further connections are not kept.
  public init(maximumRanges: Int = usualMaximumRanges) {
    self.maximumRanges = min(maximumRanges, Int(UInt32.max))
    answers = AnswerIndex(limit: maximumRanges)
  }

  /// Adds a range of a connection. Ranges are added in order, and can be looked up once the connection's record was
  /// received.
  public mutating func receive(_ record: FateRecord) {
    guard entries.count + openRanges < maximumRanges else {
      // A connection is kept whole or not at all.
      openRanges -= open[record.connection]?.count ?? 0
      open[record.connection] = []
      return
    }
    let ranges = open[record.connection]
    // A connection that was dropped continues in its middle.
    guard record.first == ranges?.last?.end ?? 0 else { return }
    if let last = ranges?.last, last.fate == record.fate, last.cause == record.cause {
      open[record.connection]?[(ranges?.count ?? 1) - 1] = Entry(end: record.last + 1, record.fate, record.cause)
      return
    }
    open[record.connection, default: []].append(Entry(end: record.last + 1, record.fate, record.cause))
    openRanges += 1
  }

  public mutating func receive(_ record: ConnectionRecord) {
    guard let ranges = open.removeValue(forKey: record.connection) else { return }
    openRanges -= ranges.count
    guard ranges.last?.end == record.notifications else {
      connectionsNotKept += 1
      return
    }
    while places.count < record.connection { places.append((0, 0)) }
    places[record.connection - 1] = (UInt32(entries.count), UInt32(ranges.count))
    entries += ranges
  }

  /// The range of equal fates that contains a notification; `nil` when its fate is not known.
  package func range(of notification: Int, on connection: Int) -> FateRecord? {
    guard notification >= 0, places.indices.contains(connection - 1) else { return nil }
    let place = places[connection - 1]
    let first = Int(place.first)
    var (low, high) = (first, first + Int(place.count))
    let end = high
    while low < high {
      let middle = (low + high) / 2
      if entries[middle].end <= notification { low = middle + 1 } else { high = middle }
    }
    guard low < end else { return nil }
    return FateRecord(
      connection: connection, first: low == first ? 0 : entries[low - 1].end, last: entries[low].end - 1,
      fate: entries[low].fate, cause: entries[low].cause)
  }

  public mutating func receive(_ record: ProviderRecord) {
    if case .response(let record) = record { answers.note(record) }
  }

  /// Replaces the texts of reasons, when all records were received: a writer puts them into notifications.
  package mutating func replaceReasons(_ body: (String) -> String) { answers.replaceReasons(body) }

  // MARK: ignored records

  public var isOpen: Bool { true }
  public mutating func receive(_ record: CaptureRecord) {}
  public mutating func receive(_ record: ErrorResponseRecord) {}
  public mutating func receive(_ record: borrowing FeedbackRecord) {}
  public mutating func receive(_ record: GapRecord) {}
  public mutating func receive(_ record: MalformedRecord) {}
  public mutating func receive(_ record: SummaryRecord) {}
}

/// The records that a writer writes fates into.
public enum FateNotation: Sendable {
  /// Nowhere.
  case omitted
  /// In `fate` records, when they are final.
  case ranges
  /// In each notification's record, from a first pass over the same recording; fates that the index lacks go to `fate`
  /// records.
  case each(FateIndex)
  /// In each notification's record, as received before it (`receiveEarly`); of connections with no such fates, as over
  /// HTTP/2, in `fate` records.
  case early
}

/// Finds the fates that a writer writes.
package struct FateLookup {
  /// An empty index if there is none. Not an optional, which would be copied for each lookup: several threads would
  /// then contend for its reference count.
  private let index: FateIndex
  private let hasIndex: Bool
  private let writesRanges: Bool
  /// Fates that were received early: those of the notifications that come next, which are at most of three kinds.
  private var early: [FateRecord] = []
  /// The open connections with such fates; `nil`: `fate` records are written for all, or for none.
  private var announced: Set<Int>?
  /// The range of the last notification; it usually contains the next one.
  private var latest = FateRecord(connection: 0, first: 0, last: -1, fate: .unknown)

  package init(_ notation: FateNotation) {
    switch notation {
    case .omitted: (index, hasIndex, writesRanges) = (FateIndex(), false, false)
    case .ranges: (index, hasIndex, writesRanges) = (FateIndex(), false, true)
    case .each(let index): (self.index, hasIndex, writesRanges) = (index, true, true)
    case .early: (index, hasIndex, writesRanges, announced) = (FateIndex(), true, false, [])
    }
  }

  /// Keeps the fate of notifications that follow.
  mutating func receiveEarly(_ record: FateRecord) {
    if early.count == 3 { early.removeFirst() }
    early.append(record)
    announced?.insert(record.connection)
  }

  /// Forgets a connection.
  mutating func noteEnd(of connection: Int) { announced?.remove(connection) }

  /// The fate to write in its record.
  @inline(__always)
  package mutating func fate(of notification: Int, on connection: Int) -> Fate? {
    if latest.connection == connection, notification <= latest.last, notification >= latest.first { return latest.fate }
    return hasIndex ? find(notification, on: connection) : nil
  }

  /// What became of a notification of the provider API.
  package mutating func outcome(of notification: Int, on connection: Int) -> NotificationOutcome? {
    guard let fate = fate(of: notification, on: connection) else { return nil }
    return NotificationOutcome(
      fate: fate, cause: latest.cause, answer: index.answers.answer(to: notification, on: connection))
  }

  @inline(never)
  private mutating func find(_ notification: Int, on connection: Int) -> Fate? {
    let known = early.first { $0.connection == connection && $0.first <= notification && notification <= $0.last }
    guard let range = known ?? index.range(of: notification, on: connection) else { return nil }
    latest = range
    return range.fate
  }

  /// Whether to write a `fate` record: the records of its notifications do not have the same fates.
  package func writes(_ record: FateRecord) -> Bool {
    if let announced { return !announced.contains(record.connection) }
    guard writesRanges else { return false }
    guard let known = index.range(of: record.first, on: record.connection) else { return true }
    return known.first > record.first || known.last < record.last || known.fate != record.fate
  }
}
