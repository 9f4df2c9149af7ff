import APNSProtocol
import Bytes
import PacketCapture

/// The packet that brought certain bytes, and its time.
struct Mark {
  var time: Timestamp
  var packet: Int
}

/// Why bytes were passed over.
enum DamageCause {
  /// They are no record.
  case malformed(ParseError.Problem)
  /// They belong to a record of which other bytes are missing from the capture.
  case cut
  /// They end a record that began before the capture did.
  case beforeCapture
  /// They begin a record that the capture does not end.
  case captureEnd
}

/// What a framer finds, in stream order.
enum FramedEvent: ~Escapable {
  /// A whole record. The receiver answers with an error when its inside is no good.
  case record(RawSpan)
  /// `length` bytes that belong to no whole record, of which `bytes` are the first ones.
  case damage(DamageCause, length: Int, bytes: RawSpan)
}

/// Cuts one direction's bytes into records, and finds the next record after a gap or damage.
///
/// While boundaries are known (aligned), records are handed out from the borrowed bytes; only a record that is spread
/// over several pieces is copied. After damage it searches: it collects bytes until the grammar is sure of a record. A
/// header seen before a gap already tells where the next record starts; that place is believed before any search.
struct RecordFramer<Grammar: RecordGrammar> {
  private enum Mode {
    case aligned
    case searching(DamageCause)
  }

  /// Bytes of a damaged region that are shown.
  private static var shownBytes: Int { 64 }
  /// A damaged region longer than this is reported in parts.
  private static var longestRegion: Int { 1 << 16 }

  private(set) var grammar: Grammar
  private var mode: Mode
  /// Bytes not yet explained: a record's beginning (aligned), or what is searched.
  private var pending: [UInt8] = []
  /// Stream offset of `pending[0]`.
  private var start = 0
  /// Aligned: bytes the record in `pending` needs before it is worth looking again.
  private var needed = 0
  /// Searching: the first place in `pending` that is still to be looked at, and the place where a record is expected.
  private var cursor = 0
  private var expected: Int?
  /// Searching: which packet brought `pending` up to which stream offset.
  private var marks: [(end: Int, mark: Mark)] = []
  private var latest = Mark(time: .none, packet: 0)

  /// - Parameter isAligned: the first byte begins a record, because the connection's beginning was captured.
  init(grammar: Grammar, isAligned: Bool) {
    self.grammar = grammar
    mode = isAligned ? .aligned : .searching(.beforeCapture)
  }

  typealias Receiver = (_ event: borrowing FramedEvent, _ offset: Int, _ mark: Mark) -> ParseError?

  // MARK: bytes

  mutating func feed(_ bytes: RawSpan, at offset: Int, mark: Mark, _ receive: Receiver) {
    latest = mark
    guard case .aligned = mode else { return search(adding: bytes, at: offset, mark, receive) }
    var position = 0
    let count = bytes.byteCount
    while !pending.isEmpty {
      let take = min(needed - pending.count, count - position)
      pending.append(copying: bytes.extracting(position..<position + take))
      position += take
      if pending.count < needed { return }
      switch grammar.extent(pending.rawBytes, 0) {
      case .incomplete(let more): needed = more
      case .malformed(let error):
        return beginSearch(.malformed(error.problem), bytes, position, offset, mark, receive)
      case .complete:
        let record = pending
        let rest = bytes.extracting(position..<count)
        guard grammar.isTrustworthy(record.rawBytes, followedBy: rest) else {
          return beginSearch(.malformed(.incomplete), bytes, position, offset, mark, receive)
        }
        hand(over: record.rawBytes, at: start, mark, receive)
        pending.removeAll(keepingCapacity: true)
      }
    }
    while position < count {
      switch grammar.extent(bytes, position) {
      case .complete(let length):
        let record = bytes.extracting(position..<position + length)
        guard grammar.isTrustworthy(record, followedBy: bytes.extracting(position + length..<count)) else {
          return beginSearch(.malformed(.incomplete), bytes, position, offset, mark, receive)
        }
        hand(over: record, at: offset + position, mark, receive)
        position += length
      case .incomplete(let more):
        start = offset + position
        needed = more
        pending.append(copying: bytes.extracting(position..<count))
        return
      case .malformed(let error):
        return beginSearch(.malformed(error.problem), bytes, position, offset, mark, receive)
      }
    }
  }

  @inline(__always)
  private mutating func hand(over record: RawSpan, at offset: Int, _ mark: Mark, _ receive: Receiver) {
    if let error = receive(.record(record), offset, mark) {
      let shown = record.extracting(0..<min(record.byteCount, Self.shownBytes))
      _ = receive(.damage(.malformed(error.problem), length: record.byteCount, bytes: shown), offset, mark)
    } else {
      grammar.note(record)
    }
  }

  // MARK: gaps and the end

  /// Notes that `length` bytes from `offset` are missing.
  mutating func gap(at offset: Int, length: Int, _ receive: Receiver) {
    var next: Int?
    if case .aligned = mode, !pending.isEmpty, case .incomplete(let total) = grammar.extent(pending.rawBytes, 0) {
      next = start + total
      // A header that is cut short itself tells nothing about the record's length.
      if !isLengthKnown(total) { next = nil }
    }
    if case .searching = mode, let expected { next = start + expected }
    explainRest(.cut, receive)
    mode = .searching(.cut)
    start = offset + length
    expected = next.flatMap { $0 >= start ? $0 - start : nil }
  }

  /// Whether the bytes needed are the whole record and not just more of its header.
  private func isLengthKnown(_ total: Int) -> Bool {
    var filled = pending
    filled.append(contentsOf: [UInt8](repeating: 0xff, count: max(0, total - pending.count)))
    if case .complete(let length) = grammar.extent(filled.rawBytes, 0) { return length == total }
    return false
  }

  /// Explains what is left: whole records inside it are still found, the rest is named.
  mutating func finish(_ receive: Receiver) {
    explainRest(.captureEnd, receive)
    mode = .searching(.cut)
  }

  private mutating func explainRest(_ cause: DamageCause, _ receive: Receiver) {
    defer {
      pending = []
      marks = []
      expected = nil
      cursor = 0
    }
    guard !pending.isEmpty else { return }
    if case .aligned = mode {
      // The record's length may be what is damaged, so look for others inside it.
      mode = .searching(cause)
      cursor = 1
    }
    work(receive, atEnd: true)
    guard !pending.isEmpty else { return }
    let shown = pending.rawBytes.extracting(0..<min(pending.count, Self.shownBytes))
    // What began the search says more than what ended it.
    var reported = cause
    if case .searching(let earlier) = mode {
      if case .captureEnd = earlier {} else { reported = earlier }
    }
    _ = receive(.damage(reported, length: pending.count, bytes: shown), start, latest)
  }

  // MARK: searching

  private mutating func beginSearch(
    _ cause: DamageCause, _ bytes: RawSpan, _ position: Int, _ offset: Int, _ mark: Mark, _ receive: Receiver
  ) {
    if pending.isEmpty { start = offset + position }
    mode = .searching(cause)
    cursor = 1
    expected = nil
    marks = pending.isEmpty ? [] : [(start + pending.count, mark)]
    search(adding: bytes.extracting(position..<bytes.byteCount), at: offset + position, mark, receive)
  }

  private mutating func search(adding bytes: RawSpan, at offset: Int, _ mark: Mark, _ receive: Receiver) {
    if pending.isEmpty { start = offset }
    pending.append(copying: bytes)
    marks.append((offset + bytes.byteCount, mark))
    work(receive, atEnd: false)
  }

  /// Explains as much of `pending` as can be; what remains is left in `pending` with everything else set for it.
  private mutating func work(_ receive: Receiver, atEnd: Bool) {
    let buffer = pending
    let count = buffer.count
    var position = 0
    defer { forget(position, of: buffer) }
    while position < count {
      switch mode {
      case .searching(let cause):
        let found = findRecord(buffer.rawBytes, from: position, atEnd: atEnd)
        // A long search is reported in parts, so that what it holds stays bounded.
        let stop = found ?? (cursor - position > Self.longestRegion ? cursor : position)
        if stop > position {
          let shown = buffer.rawBytes.extracting(position..<min(stop, position + Self.shownBytes))
          _ = receive(
            .damage(cause.insideRecords, length: stop - position, bytes: shown), start + position,
            mark(endingAt: start + stop))
          position = stop
        }
        guard found != nil else { return }
        mode = .aligned
      case .aligned:
        switch grammar.extent(buffer.rawBytes, position) {
        case .incomplete(let more):
          guard atEnd else {
            needed = more
            return
          }
          mode = .searching(.captureEnd)
          cursor = position + 1
        case .malformed(let error):
          mode = .searching(.malformed(error.problem))
          cursor = position + 1
        case .complete(let length):
          let end = position + length
          let record = buffer.rawBytes.extracting(position..<end)
          guard grammar.isTrustworthy(record, followedBy: buffer.rawBytes.extracting(end..<count)) else {
            mode = .searching(.malformed(.incomplete))
            cursor = position + 1
            continue
          }
          hand(over: record, at: start + position, mark(endingAt: start + end), receive)
          position = end
        }
      }
    }
  }

  /// Drops the first bytes of `pending`, which are explained.
  private mutating func forget(_ count: Int, of buffer: [UInt8]) {
    guard count > 0 || isAligned else { return }
    pending = Array(buffer[count...])
    start += count
    cursor = max(0, cursor - count)
    expected = expected.map { $0 - count }
    if isAligned { marks = [] } else { marks.removeAll { $0.end <= start } }
  }

  private var isAligned: Bool { if case .aligned = mode { true } else { false } }

  /// Where in `buffer` the next record starts, `from` being the first unexplained byte; `nil` when none is sure yet,
  /// and `cursor` is then the first place that is still to be looked at.
  private mutating func findRecord(_ buffer: RawSpan, from: Int, atEnd: Bool) -> Int? {
    if let place = expected {
      switch grammar.canStart(buffer, min(place, buffer.byteCount), atEnd: atEnd) {
      case .needsMore: return nil
      case .yes:
        expected = nil
        return place
      case .no:
        expected = nil
        // The stream ends exactly where the cut record ends: nothing else can begin before.
        if atEnd && place == buffer.byteCount { cursor = buffer.byteCount }
      }
    }
    // The bytes before `from` belong to records and are no part of what is searched.
    let region = buffer.extracting(from..<buffer.byteCount)
    var candidate = max(cursor, from)
    defer { cursor = candidate }
    while candidate < buffer.byteCount {
      switch grammar.probe(region, candidate - from, atEnd: atEnd) {
      case .yes: return candidate
      case .no: candidate += 1
      case .needsMore: return nil
      }
    }
    return nil
  }

  private func mark(endingAt end: Int) -> Mark { marks.first { $0.end >= end }?.mark ?? latest }
}

extension DamageCause {
  /// The cause as it reads when whole records follow: the end of the capture did not cut this then.
  fileprivate var insideRecords: DamageCause {
    if case .captureEnd = self { .malformed(.incomplete) } else { self }
  }
}
