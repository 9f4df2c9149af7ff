import BinaryProtocol
import Bytes
import DeviceProtocol
import PacketCapture
import ProviderAPI
import PushModel

/// Passes the selected records to another sink, with the records of their connections, the fates of these connections'
/// notifications, and a summary of the selection.
///
/// The selection is made after sessions and error responses were analysed, so that counts and fates in records are
/// those of the whole recording.
public struct SelectedRecords: RecordSink {
  /// Receives the selected records. An existential, so that the path from packet to record is compiled for one type:
  /// the dynamic call is only for selected records and cheap compared with writing one.
  private var sink: any RecordSink
  private let selection: RecordSelection
  private let facts: RecordingFacts
  private var fates: FateLookup
  /// Whether connections' records count only their selected records.
  private let countsSelected: Bool
  private let limit: Int
  private let maximumRanges: Int

  private var times = Times.open
  private var connections = Tallies(blank: ConnectionState(opened: .none))
  /// The totals of the selected records.
  public private(set) var summary = SummaryRecord()
  private var selected = 0
  private var inSegment = 0
  /// The latest selected notifications, consecutive ones of one connection, which its state does not count yet: most
  /// notifications follow the one before, and need no lookup of their connection's state.
  private var run = Run()
  private var ranges = 0
  /// Whether the sink receives unselected records too, and whether its last mark was that records are selected.
  private let passesAll: Bool
  private var isMarkedSelected = true
  /// Whether a limit was reached, so that records may be missing and fates are not counted.
  public private(set) var isCut = false

  /// The selected times; relative ones are resolved with the recording's first time.
  private enum Times {
    case open
    /// A bound is relative to a time not known yet.
    case unknown
    case between(Timestamp, Timestamp)
  }

  /// The state of an open connection.
  private struct ConnectionState {
    var opened: Timestamp
    /// Whether a record of the connection was selected, so that the sink was notified of its opening.
    var isShown = false
    var notifications = 0
    var errorResponses = 0
    var tuples = 0
    var responses = 0
    var messages = 0
    /// Notifications whose token matches.
    var matching: [Range<Int>] = []
    /// Selected notifications whose fates are not counted yet.
    var uncounted: [Range<Int>] = []
    var fates = FateCounts()
    /// Fates that were final before a record was selected.
    var early: [FateRecord] = []
  }

  private struct Run {
    var connection = -1
    var first = 0
    var next = 0
  }

  /// - Parameters:
  ///   - facts: from a first pass, when the selection needs them.
  ///   - countsSelected: a connection's record counts only its selected records, for sinks that compute sums; otherwise
  ///     the record counts all records of the connection.
  ///   - limit: the number of selected records after which reading ends.
  ///   - maximumRanges: ranges of selected notifications kept until their connection ends.
  public init(
    _ sink: some RecordSink, _ selection: RecordSelection, facts: RecordingFacts = RecordingFacts(),
    countsSelected: Bool = false, limit: Int = .max,
    maximumRanges: Int = FateIndex.usualMaximumRanges
  ) {
    self.sink = sink
    self.selection = selection
    self.facts = facts
    fates = FateLookup(.each(facts.fates))
    self.countsSelected = countsSelected
    self.limit = limit
    self.maximumRanges = maximumRanges
    passesAll = sink.takesWholeRecording
    if selection.from != nil || selection.to != nil { times = .unknown }
    resolveTimes(.none)
  }

  private var isFull: Bool { selected >= limit }
  public var isOpen: Bool { !isFull && sink.isOpen }

  public mutating func pause() { sink.pause() }

  // MARK: selection

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
    isNumbered(connection) && (selection.topics.isEmpty || facts.isOfTopic(connection))
  }

  @inline(__always)
  private func isNumbered(_ connection: Int) -> Bool {
    selection.connections.isEmpty || selection.connections.contains { $0.contains(connection) }
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
    _ fields: PushFields, _ frame: RawSpan, _ place: RecordPlace, _ index: Int
  ) -> Bool {
    if isFull { return false }
    if !selection.tokens.isEmpty {
      guard matches(frame.extracting(fields.token.range), index, on: place.connection) else { return false }
    }
    guard isInTime(place.time), isOfType(.notification), isOnConnection(place.connection) else { return false }
    if !selection.identifiers.isEmpty {
      guard let identifier = fields.identifier, selection.identifiers.contains(identifier) else { return false }
    }
    if !selection.fates.isEmpty {
      guard let fate = fates.fate(of: index, on: place.connection), selection.fates.contains(fate) else { return false }
    }
    return selection.statuses.isEmpty || facts.isNamed(index, on: place.connection)
  }

  /// Whether the token matches, which is noted for the answers to it.
  private mutating func matches(_ token: RawSpan, _ index: Int, on connection: Int) -> Bool {
    guard fits(token) else { return false }
    if let slot = connections.index(of: connection), !connections[slot].matching.extend(with: index..<index + 1),
      reserveRange()
    {
      connections[slot].matching.insert(index..<index + 1)
    }
    return true
  }

  private mutating func selects(_ record: borrowing ProviderNotificationRecord) -> Bool {
    if isFull { return false }
    let (place, index) = (record.place, record.index)
    if !selection.tokens.isEmpty {
      let token = record.bytes(of: record.request.token)
      guard matches(token, index, on: place.connection) else { return false }
    }
    guard selection.identifiers.isEmpty, isInTime(place.time), isOfType(.notification), isNumbered(place.connection)
    else { return false }
    if !selection.topics.isEmpty {
      let topic = record.text(of: record.request.topic)
      guard topic.map({ selection.topics.contains($0) }) ?? facts.isOfTopic(place.connection) else { return false }
    }
    if !selection.fates.isEmpty {
      guard let fate = fates.fate(of: index, on: place.connection), selection.fates.contains(fate) else { return false }
    }
    return selection.statuses.isEmpty || facts.isNamed(index, on: place.connection)
  }

  private mutating func selects(_ record: ProviderRecord) -> Bool {
    let (place, type) = (record.place, record.type)
    guard case .response(let response) = record else {
      return selection.tokens.isEmpty && selects(type, place.connection, place.time)
    }
    guard !isFull, selection.identifiers.isEmpty, isInTime(place.time), isOfType(type), isOnConnection(place.connection)
    else { return false }
    if !selection.statuses.isEmpty {
      guard let status = response.status, selection.statuses.contains(status) else { return false }
    }
    return concerns(response.notification, on: place.connection)
  }

  /// Whether the selected tokens and fates are those of a notification that a record names.
  private func concerns(_ notification: Int?, on connection: Int) -> Bool {
    guard !selection.tokens.isEmpty || !selection.fates.isEmpty else { return true }
    guard let notification else { return false }
    if !selection.tokens.isEmpty {
      guard let slot = connections.index(of: connection), Self.contains(connections[slot].matching, notification)
      else { return false }
    }
    guard !selection.fates.isEmpty else { return true }
    return facts.fates.range(of: notification, on: connection).map { selection.fates.contains($0.fate) } ?? false
  }

  private mutating func selects(_ record: ErrorResponseRecord) -> Bool {
    let connection = record.place.connection
    guard !isFull, isInTime(record.place.time), isOfType(.errorResponse), isOnConnection(connection),
      selection.identifiers.isEmpty || selection.identifiers.contains(record.response.identifier),
      selection.statuses.isEmpty || selection.statuses.contains(Int(record.response.status.rawValue))
    else { return false }
    return concerns(record.notification, on: connection)
  }

  private func selects(_ record: MessageRecord) -> Bool {
    let place = record.place
    guard !isFull, isInTime(place.time), isOfType(record.type), isNumbered(place.connection), selection.fates.isEmpty,
      selection.statuses.isEmpty
    else { return false }
    switch record {
    case .device(let record):
      return selection.identifiers.isEmpty
        && (selection.tokens.isEmpty || record.message.tokens.contains { fits($0.rawBytes) })
        && (selection.topics.isEmpty || record.message.topics.contains { selection.topics.contains($0) }
          || facts.isOfTopic(place.connection))
    case .localPush(let record):
      return selection.tokens.isEmpty && (selection.topics.isEmpty || facts.isOfTopic(place.connection))
        && (selection.identifiers.isEmpty || selection.identifiers.contains(record.message.identifier))
    }
  }

  private func selects(_ type: RecordType, _ connection: Int, _ time: Timestamp) -> Bool {
    !isFull && isInTime(time) && isOfType(type) && isOnConnection(connection) && selection.fates.isEmpty
      && selection.statuses.isEmpty && selection.identifiers.isEmpty
  }

  // MARK: memory

  /// Counts another range; `false` if the limit is reached.
  @inline(never)
  private mutating func reserveRange() -> Bool {
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

  /// Counts a selected record of a connection. Before the first one, the sink is notified that the connection was
  /// opened.
  @inline(__always)
  private mutating func show(_ connection: Int) -> Int? {
    selected += 1
    guard let slot = connections.index(of: connection) else { return nil }
    if !connections[slot].isShown { open(slot, connection) }
    return slot
  }

  @inline(never)
  private mutating func open(_ slot: Int, _ connection: Int) {
    connections[slot].isShown = true
    summary.connections += 1
    if passesAll { return sink.select(connection: connection) }
    sink.opened(connection: connection, at: connections[slot].opened)
    for record in connections[slot].early { sink.receive(record) }
    connections[slot].early = []
  }

  /// Whether the sink receives a record. Marks first, for the sink, whether that record is selected.
  @inline(__always)
  private mutating func passes(_ isSelected: Bool) -> Bool {
    if passesAll, isSelected != isMarkedSelected { mark(isSelected) }
    return isSelected || passesAll
  }

  @inline(never)
  private mutating func mark(_ isSelected: Bool) {
    isMarkedSelected = isSelected
    sink.mark(isSelected: isSelected)
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
    connections.add(ConnectionState(opened: time), number: connection)
    if passesAll, passes(false) { sink.opened(connection: connection, at: time) }
  }

  public mutating func presented(subject: String, connection: Int) {
    sink.presented(subject: subject, connection: connection)
  }

  public mutating func ended(connection: Int) { sink.ended(connection: connection) }

  public mutating func receive(_ fields: PushFields, _ frame: RawSpan, at place: RecordPlace, index: Int) {
    let isSelected = selects(fields, frame, place, index)
    if isSelected { note(index, place.connection) }
    if passes(isSelected) { sink.receive(fields, frame, at: place, index: index) }
  }

  public mutating func receive(
    malformed problem: String, _ fields: PushFields, _ frame: RawSpan, at place: RecordPlace, index: Int
  ) {
    let isSelected = selects(fields, frame, place, index)
    if isSelected {
      note(index, place.connection)
      summary.malformed += 1
    }
    guard passes(isSelected) else { return }
    sink.receive(malformed: problem, fields, frame, at: place, index: index)
  }

  @inline(__always)
  private mutating func note(_ index: Int, _ connection: Int) {
    selected += 1
    inSegment += 1
    if run.connection == connection, run.next == index {
      run.next += 1
    } else {
      begin(index, connection)
    }
  }

  @inline(never)
  private mutating func begin(_ index: Int, _ connection: Int) {
    endRun()
    run = Run(connection: connection, first: index, next: index + 1)
    if let slot = connections.index(of: connection), !connections[slot].isShown { open(slot, connection) }
  }

  /// Adds the latest notifications to the counts.
  private mutating func endRun() {
    let (connection, indexes) = (run.connection, run.first..<run.next)
    run = Run()
    guard !indexes.isEmpty else { return }
    summary.notifications += indexes.count
    guard countsSelected, let slot = connections.index(of: connection) else { return }
    connections[slot].notifications += indexes.count
    if !connections[slot].uncounted.extend(with: indexes), reserveRange() {
      connections[slot].uncounted.insert(indexes)
    }
  }

  public mutating func segment(notifications: Int, at time: Timestamp) {
    sink.segment(notifications: inSegment, at: time)
    inSegment = 0
  }

  public mutating func receiveEarly(_ record: FateRecord) { sink.receiveEarly(record) }

  public mutating func receiveEarly(_ record: ErrorResponseRecord) {
    let isSelected = selects(record)
    if isSelected, let slot = connections.index(of: record.place.connection), !connections[slot].isShown {
      open(slot, record.place.connection)
    }
    if passes(isSelected) { sink.receiveEarly(record) }
  }

  public mutating func receive(_ record: ErrorResponseRecord) {
    let isSelected = selects(record)
    if isSelected {
      if let slot = show(record.place.connection) { connections[slot].errorResponses += 1 }
      summary.errorResponses += 1
    }
    if passes(isSelected) { sink.receive(record) }
  }

  public mutating func receive(_ record: borrowing FeedbackRecord) {
    let isSelected =
      selects(.feedback, record.place.connection, record.place.time)
      && (selection.tokens.isEmpty || fits(record.tuple.token))
    if isSelected {
      if let slot = show(record.place.connection) { connections[slot].tuples += 1 }
      summary.feedbackTuples += 1
    }
    if passes(isSelected) { sink.receive(record) }
  }

  public mutating func receive(_ record: borrowing ProviderNotificationRecord) {
    let isSelected = selects(record)
    if isSelected { note(record.index, record.place.connection) }
    if passes(isSelected) { sink.receive(record) }
  }

  public mutating func receive(_ record: ProviderRecord) {
    let isSelected = selects(record)
    if isSelected {
      let slot = show(record.place.connection)
      if case .response = record {
        summary.responses += 1
        if let slot { connections[slot].responses += 1 }
      }
    }
    if passes(isSelected) { sink.receive(record) }
  }

  public mutating func receive(_ record: MessageRecord) {
    let isSelected = selects(record)
    if isSelected {
      if let slot = show(record.place.connection) { connections[slot].messages += 1 }
      summary.messages += 1
    }
    if passes(isSelected) { sink.receive(record) }
  }

  public mutating func receive(_ record: GapRecord) {
    let isSelected = selection.tokens.isEmpty && selects(.gap, record.place.connection, record.place.time)
    if isSelected {
      _ = show(record.place.connection)
      summary.gaps += 1
    }
    if passes(isSelected) { sink.receive(record) }
  }

  public mutating func receive(_ record: MalformedRecord) {
    let isSelected = selection.tokens.isEmpty && selects(.malformed, record.place.connection, record.place.time)
    if isSelected {
      _ = show(record.place.connection)
      summary.malformed += 1
    }
    if passes(isSelected) { sink.receive(record) }
  }

  public mutating func receive(_ record: FateRecord) {
    endRun()
    guard let slot = connections.index(of: record.connection) else { return }
    count(record, slot)
    if passesAll {
      if passes(connections[slot].isShown) { sink.receive(record) }
    } else if connections[slot].isShown {
      if !isFull { sink.receive(record) }
    } else if reserveRange() {
      connections[slot].early.append(record)
    }
  }

  /// Counts the fates of the selected notifications in a range; ranges arrive in order.
  private mutating func count(_ record: FateRecord, _ slot: Int) {
    var done = 0
    for range in connections[slot].uncounted {
      let count = max(0, min(range.upperBound, record.last + 1) - max(range.lowerBound, record.first))
      switch record.fate {
      case .accepted: connections[slot].fates.accepted += count
      case .rejected: connections[slot].fates.rejected += count
      case .discarded: connections[slot].fates.discarded += count
      case .unknown: connections[slot].fates.unknown += count
      }
      guard range.upperBound <= record.last + 1 else { break }
      done += 1
    }
    connections[slot].uncounted.removeFirst(done)
    ranges -= done
  }

  public mutating func receive(_ record: ConnectionRecord) {
    endRun()
    let isWanted = (selection.isEmpty || selection.types.contains(.connection)) && selectsItself(record)
    if isWanted, let slot = connections.index(of: record.connection) {
      selected += 1
      if !connections[slot].isShown { open(slot, record.connection) }
    }
    guard let state = connections.remove(record.connection) else { return }
    ranges -= state.matching.count + state.uncounted.count + state.early.count
    // If a connection was still open when the limit was reached, its record would cover only a part of it.
    let isShown = state.isShown && (isWanted || !isFull)
    var record = record
    if countsSelected {
      var counts = ConnectionRecord.Selected(
        notifications: state.notifications, errorResponses: state.errorResponses, feedbackTuples: state.tuples,
        responses: state.responses, messages: state.messages, fates: state.fates)
      // Ranges beyond the limit are not counted.
      counts.fates.unknown += max(0, state.notifications - state.fates.written)
      record.selected = counts
    }
    if isShown { summary.noteEnd(of: record.counted) }
    if passes(isShown) { sink.receive(passesAll ? record : record.counted) }
  }

  private func selectsItself(_ record: ConnectionRecord) -> Bool {
    selection.tokens.isEmpty && selects(.connection, record.connection, record.opened)
  }

  public mutating func receive(_ record: CaptureLossRecord) {
    if passes(isOfType(.captureLoss)) { sink.receive(record) }
  }

  public mutating func receive(_ record: DeliveryRecord) {
    let isSelected =
      selects(.delivery, record.connection ?? 0, record.time)
      && (selection.tokens.isEmpty || fits(record.token.rawBytes))
    if passes(isSelected) { sink.receive(record) }
  }

  public mutating func receive(_ record: SummaryRecord) {
    endRun()
    summary.packets = record.packets
    summary.droppedPackets = record.droppedPackets
    summary.unreadPackets = record.unreadPackets
    summary.unread = record.unread
    sink.receive(summary)
  }
}

extension [Range<Int>] {
  /// Adds a range that no other overlaps: of requests over HTTP/2 a later one may end before an earlier one.
  fileprivate mutating func insert(_ range: Range<Int>) {
    var place = count
    while place > 0, self[place - 1].lowerBound > range.lowerBound { place -= 1 }
    insert(range, at: place)
  }

  /// Extends the last range when the other follows it.
  @inline(__always)
  fileprivate mutating func extend(with range: Range<Int>) -> Bool {
    let last = count - 1
    guard last >= 0, self[last].upperBound == range.lowerBound else { return false }
    self[last] = self[last].lowerBound..<range.upperBound
    return true
  }
}
