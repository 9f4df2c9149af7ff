import APNSProtocol
import Bytes
import PacketCapture

/// The fates of the notifications of a recording, as a first reading of it has found them. A second one can then tell
/// each with its notification.
///
/// It is a sink: read the recording into it. It keeps a range for notifications that follow each other and have the same
/// fate, which a connection has up to three of, and more only when it got several error responses.
public struct FateBook: RecordSink, Sendable {
  private typealias Fate = ProviderSession.Fate

  /// A range of one connection. It begins where the one before it ends, the first with notification 0.
  private struct Entry {
    private let bits: UInt64

    init(end: Int, _ fate: Fate) { bits = UInt64(end) << 2 | UInt64(Self.code(of: fate)) }

    var end: Int { Int(bits >> 2) }
    var fate: Fate { Self.fates[Int(bits & 3)] }

    private static let fates = [Fate.accepted, .rejected, .discarded, .unknown]

    private static func code(of fate: Fate) -> Int {
      switch fate {
      case .accepted: 0
      case .rejected: 1
      case .discarded: 2
      case .unknown: 3
      }
    }
  }

  private let maximumRanges: Int
  /// Where a connection's ranges are, by its number less 1; none when they are not kept.
  private var places: [(first: UInt32, count: UInt32)] = []
  private var entries: [Entry] = []
  /// Of connections that have not ended.
  private var open: [Int: [Entry]] = [:]
  private var openRanges = 0
  /// Connections whose fates are not kept, for the limit.
  public private(set) var connectionsNotKept = 0

  /// - Parameter maximumRanges: that are kept, of 8 bytes each; the fates of further connections are not.
  public init(maximumRanges: Int = DissectionOptions().maximumFateRanges) {
    self.maximumRanges = min(maximumRanges, Int(UInt32.max))
  }

  /// Takes a connection's ranges, one after the other; they count when its record comes.
  public mutating func receive(_ record: FateRecord) {
    guard entries.count + openRanges < maximumRanges else {
      // None of it is better than a part.
      openRanges -= open[record.connection]?.count ?? 0
      open[record.connection] = []
      return
    }
    let ranges = open[record.connection]
    // One that was given up begins again in its middle.
    guard record.first == ranges?.last?.end ?? 0 else { return }
    open[record.connection, default: []].append(Entry(end: record.last + 1, record.fate))
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

  /// The range of equal fates that a notification is in; `nil` when it is not known.
  func range(of notification: Int, on connection: Int) -> FateRecord? {
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
      fate: entries[low].fate)
  }

  // MARK: what it has no use for

  public var isOpen: Bool { true }
  public mutating func receive(_ record: CaptureRecord) {}
  public mutating func receive(_ layout: PushNotification.Layout, _ frame: RawSpan, at place: RecordPlace, index: Int) {
  }
  public mutating func receive(
    malformed problem: String, _ layout: PushNotification.Layout, _ frame: RawSpan, at place: RecordPlace, index: Int
  ) {}
  public mutating func receive(_ record: ErrorResponseRecord) {}
  public mutating func receive(_ record: borrowing FeedbackRecord) {}
  public mutating func receive(_ record: GapRecord) {}
  public mutating func receive(_ record: MalformedRecord) {}
  public mutating func receive(_ record: SummaryRecord) {}
}

/// Where fates are written.
public enum FateNotation: Sendable {
  /// Nowhere.
  case omitted
  /// In `fate` records, when they are settled.
  case ranges
  /// In each notification's record, as an earlier reading of the same recording has found them; those that it has not
  /// found, in `fate` records.
  case each(FateBook)
}

/// The fates that a writer tells.
struct FateNotes {
  private let book: FateBook?
  private let tellsRanges: Bool
  /// The range of the latest notification: the next one is most often in it.
  private var latest = FateRecord(connection: 0, first: 0, last: -1, fate: .unknown)

  init(_ notation: FateNotation) {
    switch notation {
    case .omitted: (book, tellsRanges) = (nil, false)
    case .ranges: (book, tellsRanges) = (nil, true)
    case .each(let book): (self.book, tellsRanges) = (book, true)
    }
  }

  /// What its record is to tell.
  @inline(__always)
  mutating func fate(of notification: Int, on connection: Int) -> ProviderSession.Fate? {
    if latest.connection == connection, notification <= latest.last, notification >= latest.first { return latest.fate }
    return book == nil ? nil : find(notification, on: connection)
  }

  @inline(never)
  private mutating func find(_ notification: Int, on connection: Int) -> ProviderSession.Fate? {
    guard let range = book?.range(of: notification, on: connection) else { return nil }
    latest = range
    return range.fate
  }

  /// Whether a `fate` record is to be written: the notifications' own do not tell the same.
  func areToldBy(_ record: FateRecord) -> Bool {
    tellsRanges && book?.range(of: record.first, on: record.connection) != record
  }
}
