import APNSProtocol
import Bytes
import PacketCapture

/// Hands the selected records on, and what belongs to them: the records of their connections, the fates of these
/// connections' notifications, and a summary of what was selected.
///
/// What sessions and error responses say is found before, so it is that of the whole recording.
public struct SelectedRecords: RecordSink {
  /// Takes what is selected. A call through a protocol's table costs little beside what a sink does with a record, and so
  /// this is one type, for which the way from packet to record is compiled once.
  public private(set) var sink: any RecordSink
  private let selection: RecordSelection
  private let facts: RecordingFacts
  private var fates: FateNotes
  /// Connections are counted by what was selected of them.
  private let countsSelected: Bool
  private let limit: Int
  private let maximumRanges: Int

  private var times = Times.open
  private var lives = Tallies(blank: Life(opened: .none))
  private var summary = SummaryRecord()
  private var selected = 0
  private var inSegment = 0
  private var ranges = 0
  /// Something was too much to be remembered, so that records may be missing and fates are not counted.
  public private(set) var isCut = false

  /// The times that are selected, when the recording's first one is known.
  private enum Times {
    case open
    /// There is a bound that is not known yet.
    case unknown
    case between(Timestamp, Timestamp)
  }

  /// What is remembered of a connection while it is open.
  private struct Life {
    var opened: Timestamp
    /// Something of it was selected, so that the sink knows it.
    var isShown = false
    var notifications = 0
    var errorResponses = 0
    var tuples = 0
    /// Those whose token fits.
    var fitting: [Range<Int>] = []
    /// Those that were selected and whose fates are not counted yet, and the counts.
    var uncounted: [Range<Int>] = []
    var fates = ProviderSession.Fates()
    /// Fates that were settled before anything was selected.
    var early: [FateRecord] = []
  }

  /// - Parameters:
  ///   - facts: of a first reading, when the selection needs them.
  ///   - countsSelected: counts in connections' records are those of what was selected, for sinks that sum them up; the
  ///     records themselves are of whole connections.
  ///   - limit: after so many records nothing more is read.
  ///   - maximumRanges: ranges of selected notifications that are remembered until their connection ends.
  public init(
    _ sink: some RecordSink, _ selection: RecordSelection, facts: RecordingFacts = RecordingFacts(),
    countsSelected: Bool = false, limit: Int = .max,
    maximumRanges: Int = DissectionOptions().maximumFateRanges
  ) {
    self.sink = sink
    self.selection = selection
    self.facts = facts
    fates = FateNotes(.each(facts.fates))
    self.countsSelected = countsSelected
    self.limit = limit
    self.maximumRanges = maximumRanges
    if selection.from != nil || selection.to != nil { times = .unknown }
    resolveTimes(.none)
  }

  private var isFull: Bool { selected >= limit }
  public var isOpen: Bool { !isFull && sink.isOpen }

  public mutating func pause() { sink.pause() }

  // MARK: what is selected

  private mutating func resolveTimes(_ start: Timestamp) {
    guard case .unknown = times else { return }
    let (first, last) = (Timestamp(nanoseconds: .min + 1), Timestamp(nanoseconds: .max))
    guard let from = selection.from.map({ $0.time(after: start) }) ?? first,
      let to = selection.to.map({ $0.time(after: start) }) ?? last
    else { return }
    times = .between(from, to)
  }

  @inline(__always)
  private func isInTime(_ time: Timestamp) -> Bool {
    switch times {
    case .open: true
    case .unknown: false
    case .between(let from, let to): time >= from && time < to
    }
  }

  @inline(__always)
  private func isOnConnection(_ connection: Int) -> Bool {
    (selection.connections.isEmpty || selection.connections.contains { $0.contains(connection) })
      && (selection.topics.isEmpty || facts.isOfTopic(connection))
  }

  @inline(__always)
  private func isOfType(_ type: RecordType) -> Bool { selection.types.isEmpty || selection.types.contains(type) }

  @inline(__always)
  private func fits(_ token: RawSpan) -> Bool {
    for prefix in selection.tokens where prefix.begins(token) { return true }
    return false
  }

  @inline(__always)
  private mutating func selects(
    _ layout: PushNotification.Layout, _ frame: RawSpan, _ place: RecordPlace, _ index: Int
  ) -> Bool {
    if isFull { return false }
    if !selection.tokens.isEmpty {
      guard fits(frame.extracting(layout.token.range)) else { return false }
      if let life = lives.index(of: place.connection), !lives[life].fitting.extend(to: index), mayRemember() {
        lives[life].fitting.append(index..<index + 1)
      }
    }
    guard isInTime(place.time), isOfType(.notification), isOnConnection(place.connection) else { return false }
    if !selection.identifiers.isEmpty {
      guard let identifier = layout.identifier, selection.identifiers.contains(identifier) else { return false }
    }
    if !selection.fates.isEmpty {
      guard let fate = fates.fate(of: index, on: place.connection), selection.fates.contains(fate) else { return false }
    }
    return selection.statuses.isEmpty || facts.isNamed(index, on: place.connection)
  }

  private mutating func selects(_ record: ErrorResponseRecord) -> Bool {
    let connection = record.place.connection
    guard !isFull, isInTime(record.place.time), isOfType(.errorResponse), isOnConnection(connection),
      selection.identifiers.isEmpty || selection.identifiers.contains(record.response.identifier),
      selection.statuses.isEmpty || selection.statuses.contains(record.response.status.rawValue)
    else { return false }
    guard !selection.tokens.isEmpty || !selection.fates.isEmpty else { return true }
    guard let named = record.notification else { return false }
    if !selection.tokens.isEmpty {
      guard let life = lives.index(of: connection), Self.contains(lives[life].fitting, named) else { return false }
    }
    guard !selection.fates.isEmpty else { return true }
    return facts.fates.range(of: named, on: connection).map { selection.fates.contains($0.fate) } ?? false
  }

  private func selects(_ type: RecordType, _ connection: Int, _ time: Timestamp) -> Bool {
    !isFull && isInTime(time) && isOfType(type) && isOnConnection(connection) && selection.fates.isEmpty
      && selection.statuses.isEmpty && selection.identifiers.isEmpty
  }

  // MARK: what is remembered

  /// There is room for another range.
  @inline(never)
  private mutating func mayRemember() -> Bool {
    guard ranges < maximumRanges else {
      isCut = true
      return false
    }
    ranges += 1
    return true
  }

  private static func contains(_ ranges: [Range<Int>], _ index: Int) -> Bool {
    var (low, high) = (0, ranges.count)
    while low < high {
      let middle = (low + high) / 2
      if ranges[middle].upperBound <= index { low = middle + 1 } else { high = middle }
    }
    return low < ranges.count && ranges[low].contains(index)
  }

  /// Something of a connection is selected: the sink is told that it was opened.
  @inline(__always)
  private mutating func show(_ connection: Int) -> Int? {
    selected += 1
    guard let life = lives.index(of: connection) else { return nil }
    if !lives[life].isShown { open(life, connection) }
    return life
  }

  @inline(never)
  private mutating func open(_ life: Int, _ connection: Int) {
    lives[life].isShown = true
    summary.connections += 1
    sink.opened(connection: connection, at: lives[life].opened)
    for record in lives[life].early { sink.receive(record) }
    lives[life].early = []
  }

  // MARK: records

  public mutating func receive(_ record: CaptureRecord) {
    var record = record
    record.selection += selection.options + (limit < .max ? ["--limit=\(limit)"] : [])
    sink.receive(record)
  }

  public mutating func receive(_ outcome: CaptureOutcome) { sink.receive(outcome) }

  public mutating func opened(connection: Int, at time: Timestamp) {
    if time.isKnown { resolveTimes(time) }
    lives.add(Life(opened: time), number: connection)
  }

  public mutating func receive(_ layout: PushNotification.Layout, _ frame: RawSpan, at place: RecordPlace, index: Int) {
    guard selects(layout, frame, place, index) else { return }
    note(index, place.connection)
    sink.receive(layout, frame, at: place, index: index)
  }

  public mutating func receive(
    malformed problem: String, _ layout: PushNotification.Layout, _ frame: RawSpan, at place: RecordPlace, index: Int
  ) {
    guard selects(layout, frame, place, index) else { return }
    note(index, place.connection)
    summary.malformed += 1
    sink.receive(malformed: problem, layout, frame, at: place, index: index)
  }

  @inline(__always)
  private mutating func note(_ index: Int, _ connection: Int) {
    summary.notifications += 1
    inSegment += 1
    guard let life = show(connection), countsSelected else { return }
    lives[life].notifications += 1
    if !lives[life].uncounted.extend(to: index), mayRemember() { lives[life].uncounted.append(index..<index + 1) }
  }

  public mutating func segment(notifications: Int, at time: Timestamp) {
    sink.segment(notifications: inSegment, at: time)
    inSegment = 0
  }

  public mutating func receiveEarly(_ record: ErrorResponseRecord) {
    guard selects(record) else { return }
    if let life = lives.index(of: record.place.connection), !lives[life].isShown {
      open(life, record.place.connection)
    }
    sink.receiveEarly(record)
  }

  public mutating func receive(_ record: ErrorResponseRecord) {
    guard selects(record) else { return }
    if let life = show(record.place.connection) { lives[life].errorResponses += 1 }
    summary.errorResponses += 1
    sink.receive(record)
  }

  public mutating func receive(_ record: borrowing FeedbackRecord) {
    guard selects(.feedback, record.place.connection, record.place.time),
      selection.tokens.isEmpty || fits(record.tuple.token)
    else { return }
    if let life = show(record.place.connection) { lives[life].tuples += 1 }
    summary.feedbackTuples += 1
    sink.receive(record)
  }

  public mutating func receive(_ record: GapRecord) {
    guard selection.tokens.isEmpty, selects(.gap, record.place.connection, record.place.time) else { return }
    _ = show(record.place.connection)
    summary.gaps += 1
    sink.receive(record)
  }

  public mutating func receive(_ record: MalformedRecord) {
    guard selection.tokens.isEmpty, selects(.malformed, record.place.connection, record.place.time) else { return }
    _ = show(record.place.connection)
    summary.malformed += 1
    sink.receive(record)
  }

  public mutating func receive(_ record: FateRecord) {
    guard let life = lives.index(of: record.connection) else { return }
    count(record, life)
    if lives[life].isShown {
      if !isFull { sink.receive(record) }
    } else if ranges < maximumRanges {
      ranges += 1
      lives[life].early.append(record)
    }
  }

  /// Counts the fates of the selected notifications in a range; ranges come in order.
  private mutating func count(_ record: FateRecord, _ life: Int) {
    var done = 0
    for range in lives[life].uncounted {
      let count = max(0, min(range.upperBound, record.last + 1) - max(range.lowerBound, record.first))
      switch record.fate {
      case .accepted: lives[life].fates.accepted += count
      case .rejected: lives[life].fates.rejected += count
      case .discarded: lives[life].fates.discarded += count
      case .unknown: lives[life].fates.unknown += count
      }
      guard range.upperBound <= record.last + 1 else { break }
      done += 1
    }
    lives[life].uncounted.removeFirst(done)
    ranges -= done
  }

  public mutating func receive(_ record: ConnectionRecord) {
    let isWanted = selection.types.contains(.connection) && selectsItself(record)
    if isWanted, let life = lives.index(of: record.connection) {
      selected += 1
      if !lives[life].isShown { open(life, record.connection) }
    }
    guard let life = lives.remove(record.connection) else { return }
    ranges -= life.fitting.count + life.uncounted.count + life.early.count
    guard life.isShown, isWanted || !isFull else { return }
    var record = record
    if countsSelected {
      record.notifications = life.notifications
      record.errorResponses = life.errorResponses
      record.feedbackTuples = life.tuples
      record.fates = life.fates
      // Those that could not be remembered.
      record.fates.unknown += max(0, life.notifications - life.fates.written)
    }
    summary.noteEnd(of: record)
    sink.receive(record)
  }

  private func selectsItself(_ record: ConnectionRecord) -> Bool {
    selection.tokens.isEmpty && selects(.connection, record.connection, record.opened)
  }

  public mutating func receive(_ record: SummaryRecord) {
    summary.packets = record.packets
    sink.receive(summary)
  }
}

extension [Range<Int>] {
  /// Makes the last range longer when the number is the next one.
  @inline(__always)
  fileprivate mutating func extend(to number: Int) -> Bool {
    let last = count - 1
    guard last >= 0, self[last].upperBound == number else { return false }
    self[last] = self[last].lowerBound..<number + 1
    return true
  }
}
