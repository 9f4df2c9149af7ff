import APNSProtocol
import Bytes
import PacketCapture

/// Counts records as `Inspection` does, and when they were, into what a report of a trace is made of.
///
/// Memory does not grow with the trace: series join their bins, tokens become a sample, and lists end at the limits.
public struct TraceInspection: RecordSink {
  public struct Limits: Sendable {
    public var inspection = Inspection.Limits()
    /// Connections whose notifications over time are kept apart.
    public var timelines = 500
    /// Distinct tokens that are counted one by one, and those of the feedback service that are remembered.
    public var tokens = 1 << 16
    public init() {}
  }

  private let limits: Limits
  private var inspection: Inspection
  private var report = TraceReport()
  private var open = Tallies(blank: Tally(number: 0, connection: TraceReport.Connection()))
  private var timelines = 0
  private var tokens: TokenTally
  /// A segment is what one packet ends of a connection, which records tell too.
  private var perSegment = Counts(highest: 4_096)
  private var bytesPerSegment = Counts(highest: 65_535)
  private var priorities = [Int](repeating: 0, count: 257)
  private var expirations = [Int](repeating: 0, count: TraceReport.Expiration.allCases.count)
  /// Listed tokens by prefix: whether one was sent to later.
  private var listed: [UInt64: Bool] = [:]
  private var ages = Samples()
  private var first = Timestamp(nanoseconds: .max)
  private var last = Timestamp.none

  private struct Tally {
    var number: Int
    var connection: TraceReport.Connection
    var firstRecord = Timestamp.none
    var lastRecord = Timestamp.none
    var sent = TimeBins(limit: 256)
    var hasTimeline = false
  }

  /// The notifications that the latest packet has ended so far: all else is counted once for each packet.
  private var run = Run(connection: 0, packet: 0, time: .none)

  private struct Run {
    var connection: Int
    var packet: Int
    var time: Timestamp
    /// Of `time`; 0 when it is not known.
    var second: Int64
    var notifications = 0
    var bytes = 0

    init(connection: Int, packet: Int, time: Timestamp) {
      (self.connection, self.packet, self.time) = (connection, packet, time)
      second = time.isKnown ? time.nanoseconds / 1_000_000_000 : 0
    }
  }

  public init(limits: Limits = Limits()) {
    self.limits = limits
    inspection = Inspection(limits: limits.inspection)
    tokens = TokenTally(limit: limits.tokens)
  }

  public var isOpen: Bool { true }

  // MARK: records

  public mutating func receive(_ record: CaptureRecord) {
    inspection.receive(record)
    guard report.sources.count < 100 else { return }
    report.sources.append(
      TraceReport.Source(
        name: record.source, format: record.format.rawValue, linkTypes: record.linkTypes.map(\.description)))
  }

  public mutating func receive(_ outcome: CaptureOutcome) { inspection.receive(outcome) }

  public mutating func opened(connection: Int, at time: Timestamp) {
    inspection.opened(connection: connection, at: time)
    note(time)
    var tally = Tally(number: connection, connection: TraceReport.Connection(opened: time.known))
    tally.hasTimeline = timelines < limits.timelines
    timelines += 1
    open.add(tally, number: connection)
  }

  @inline(__always)
  private mutating func note(_ time: Timestamp) {
    guard time.isKnown else { return }
    if time < first { first = time }
    if time > last { last = time }
  }

  @inline(__always)
  public mutating func receive(_ layout: PushNotification.Layout, _ frame: RawSpan, at place: RecordPlace, index: Int) {
    inspection.receive(layout, frame, at: place, index: index)
    note(layout, frame, place)
  }

  public mutating func receive(
    malformed problem: String, _ layout: PushNotification.Layout, _ frame: RawSpan, at place: RecordPlace, index: Int
  ) {
    inspection.receive(malformed: problem, layout, frame, at: place, index: index)
    note(layout, frame, place)
  }

  @inline(__always)
  private mutating func note(_ layout: PushNotification.Layout, _ frame: RawSpan, _ place: RecordPlace) {
    report.frameBytes &+= place.length
    priorities[layout.priority.map(Int.init) ?? 256] += 1
    let token = frame.extracting(layout.token.range)
    if token.byteCount > 0 {
      let prefix = Self.prefix(token)
      tokens.add(prefix)
      if !listed.isEmpty { noteListed(prefix) }
    }
    if place.packet != run.packet || place.connection != run.connection || place.time != run.time { begin(place) }
    run.notifications += 1
    run.bytes &+= place.length
    expirations[Self.meaning(layout.expiration, run.second).rawValue] += 1
  }

  /// Counts what one packet has ended, and begins with the next.
  @inline(never)
  private mutating func begin(_ place: RecordPlace) {
    flush()
    run = Run(connection: place.connection, packet: place.packet, time: place.time)
  }

  private mutating func flush() {
    guard run.notifications > 0, let index = open.index(of: run.connection) else { return }
    defer { (run.notifications, run.bytes) = (0, 0) }
    open[index].connection.frameBytes &+= run.bytes
    if run.packet > 0 {
      perSegment.add(run.notifications)
      bytesPerSegment.add(run.bytes)
    }
    guard run.time.isKnown else { return }
    note(run.time)
    report.sent.add(run.notifications, bytes: run.bytes, at: run.time)
    if !open[index].firstRecord.isKnown { open[index].firstRecord = run.time }
    open[index].lastRecord = max(open[index].lastRecord, run.time)
    if open[index].hasTimeline { open[index].sent.add(run.notifications, bytes: run.bytes, at: run.time) }
  }

  @inline(__always)
  private static func prefix(_ token: RawSpan) -> UInt64 {
    token.byteCount >= 8 ? token.uint64(at: 0) : UInt64(token.byte(at: 0)) << 56
  }

  @inline(__always)
  private static func meaning(_ expiration: UInt32?, _ second: Int64) -> TraceReport.Expiration {
    guard let expiration else { return .none }
    if expiration == 0 { return .zero }
    let seconds = Int64(expiration) - second
    return seconds <= 0
      ? .past
      : seconds <= 3_600
        ? .withinHour : seconds <= 86_400 ? .withinDay : seconds <= 2_419_200 ? .withinFourWeeks : .later
  }

  @inline(never)
  private mutating func noteListed(_ prefix: UInt64) {
    guard let wasSentTo = listed[prefix] else { return }
    report.listed.sentToLater += 1
    if !wasSentTo {
      listed[prefix] = true
      report.listed.sentToLaterTokens += 1
    }
  }

  public mutating func segment(notifications: Int, at time: Timestamp) {
    inspection.segment(notifications: notifications, at: time)
  }

  public mutating func receiveEarly(_ record: ErrorResponseRecord) { inspection.receiveEarly(record) }

  public mutating func receive(_ record: ErrorResponseRecord) {
    inspection.receive(record)
    noteRecord(record.place)
    if let index = open.index(of: record.place.connection) { open[index].connection.errorResponses += 1 }
    if record.place.time.isKnown { report.errors.add(1, bytes: 0, at: record.place.time) }
    if report.errorTimes.count < limits.inspection.listed { report.errorTimes.append(record.place.time.known) }
  }

  public mutating func receive(_ record: borrowing FeedbackRecord) {
    inspection.receive(record)
    noteRecord(record.place)
    if record.place.time.isKnown { report.feedback.add(1, bytes: record.place.length, at: record.place.time) }
    let timestamp = record.tuple.timestamp
    if timestamp > 0 {
      report.listed.firstTimestamp = min(report.listed.firstTimestamp ?? timestamp, timestamp)
      report.listed.lastTimestamp = max(report.listed.lastTimestamp ?? timestamp, timestamp)
      if record.place.time.isKnown {
        ages.add(Double(record.place.time.nanoseconds) / 1e9 - Double(timestamp))
      }
    }
    guard record.tuple.token.byteCount > 0 else { return }
    let prefix = Self.prefix(record.tuple.token)
    if listed[prefix] == nil {
      guard listed.count < limits.tokens else {
        report.listed.isCut = true
        return
      }
      listed[prefix] = false
    }
  }

  private mutating func noteRecord(_ place: RecordPlace) {
    if run.connection == place.connection { flush() }
    guard place.time.isKnown else { return }
    note(place.time)
    guard let index = open.index(of: place.connection) else { return }
    if !open[index].firstRecord.isKnown || place.time < open[index].firstRecord {
      open[index].firstRecord = place.time
    }
    if place.time > open[index].lastRecord { open[index].lastRecord = place.time }
  }

  public mutating func receive(_ record: GapRecord) { inspection.receive(record) }
  public mutating func receive(_ record: MalformedRecord) { inspection.receive(record) }

  public mutating func receive(_ record: ConnectionRecord) {
    inspection.receive(record)
    if run.connection == record.connection { flush() }
    note(record.closed)
    guard var tally = open.remove(record.connection) else { return }
    guard report.connections.count < limits.inspection.listed else { return }
    tally.connection.closed = record.closed.known
    tally.connection.firstRecord = tally.firstRecord.known
    tally.connection.lastRecord = tally.lastRecord.known
    tally.connection.feedbackTuples = record.feedbackTuples
    if tally.hasTimeline { tally.connection.sent = tally.sent }
    report.connections.append(tally.connection)
  }

  public mutating func receive(_ record: SummaryRecord) { inspection.receive(record) }

  // MARK: the report

  /// Everything seen so far, counted up. Call it once, when reading has ended.
  public mutating func finish() -> TraceReport {
    report.perSegment = perSegment.pairs
    report.payloads = inspection.shared.payloadLengths.pairs
    report.inspection = inspection.finish()
    report.bytesPerSegment = bytesPerSegment.pairs
    report.start = last.isKnown ? first.nanoseconds : nil
    report.end = last.known
    for (priority, count) in priorities.enumerated() where count > 0 {
      report.priorities.updateValue(count, forKey: UInt8(exactly: priority))
    }
    for (index, count) in expirations.enumerated() where count > 0 {
      if let meaning = TraceReport.Expiration(rawValue: index) { report.expirations[meaning] = count }
    }
    // Bins of one length, so that series can be added.
    let series = report.connections.compactMap(\.sent) + [report.sent, report.errors, report.feedback]
    let exponent = series.map(\.exponent).max() ?? 0
    report.sent.join(to: exponent)
    report.errors.join(to: exponent)
    report.feedback.join(to: exponent)
    for index in report.connections.indices { report.connections[index].sent?.join(to: exponent) }
    report.tokens = tokens.report
    report.listed.tokens = listed.count
    report.listed.ageS = ages.distribution
    return report
  }
}

extension Timestamp {
  fileprivate var known: Int64? { isKnown ? nanoseconds : nil }
}
