import BinaryProtocol
import Bytes
import Measurement
import PacketCapture
import PushModel
import Records

/// A sink that counts records as `Inspection` does, and over time, into a `TraceReport`.
///
/// Memory does not grow with the trace: bins of series are joined, tokens beyond the limit are sampled, and lists end
/// at the limits.
public struct TraceInspection: RecordSink {
  /// Limits on what is kept individually; beyond a limit, records are only counted.
  public struct Limits: Sendable {
    /// The limits of the inspection that is part of the report.
    public var inspection = Inspection.Limits()
    /// Connections with a separate series of notifications over time.
    public var timelines = 500
    /// Distinct tokens that are counted individually, and tokens of the feedback service that are kept: this many of
    /// each.
    public var tokens = 1 << 16
    public init() {}
  }

  private let limits: Limits
  /// Receives all records as well, to decide the outcome of each notification.
  private let stories: StoryCollector?
  private var inspection: Inspection
  private var report = TraceReport()
  private var sent = TimeBins<CountBin>()
  private var errors = TimeBins<CountBin>()
  private var feedback = TimeBins<CountBin>()
  /// Of answers over HTTP/2, by when they came. Histograms are large, so there are few bins.
  private var latencies = TimeBins<LatencyBin>(limit: 64)
  private var open = Tallies(blank: Tally())
  /// Tallies of the connections that the inspection lists, in its order.
  private var ended: [Tally] = []
  /// Times of the error responses that the inspection lists, in its order.
  private var errorTimes: [Timestamp] = []
  private var timelines = 0
  private var tokens: TokenTally
  /// A segment is the records of a connection that end in one packet.
  private var perSegment = Counts(highest: 4_096)
  private var bytesPerSegment = Counts(highest: 65_535)
  /// Notifications by priority; index 256 counts notifications without a priority.
  private var priorities = [Int](repeating: 0, count: 257)
  /// Listed tokens by prefix: whether one was sent to later, and whether one of its tuples is selected.
  private var listed: [UInt64: (wasSentTo: Bool, isSelected: Bool)] = [:]
  private var ages = Samples()
  /// The range of the tuples' timestamps, in UNIX seconds.
  private var listedTimes: ClosedRange<UInt32>?
  private var first = Timestamp(nanoseconds: .max)
  private var last = Timestamp.none
  /// Whether the next records are selected; statements about selected records may depend on other records.
  private var isSelected = true

  /// The counts of one connection.
  private struct Tally {
    var opened = Timestamp.none
    var firstRecord = Timestamp.none
    var lastRecord = Timestamp.none
    var closed = Timestamp.none
    /// Bytes of its notifications' frames.
    var frameBytes = 0
    var errorResponses = 0
    var sent = TimeBins<CountBin>(limit: 256)
    var hasTimeline = false
  }

  /// The notifications that the latest packet has ended so far: everything else is counted once per packet.
  private var run = Run(connection: 0, packet: 0, time: .none)

  private struct Run {
    var connection: Int
    var packet: Int
    var time: Timestamp
    /// The second of `time`, since 1970; 0 if unknown.
    var second: Int64
    var notifications = 0
    var bytes = 0

    init(connection: Int, packet: Int, time: Timestamp) {
      (self.connection, self.packet, self.time) = (connection, packet, time)
      second = time.isKnown ? time.nanoseconds / 1_000_000_000 : 0
    }
  }

  /// Makes an inspection of one trace.
  public init(limits: Limits = Limits()) { self.init(limits: limits, stories: nil) }

  package init(limits: Limits, stories: StoryCollector?) {
    self.limits = limits
    self.stories = stories
    inspection = Inspection(limits: limits.inspection)
    tokens = TokenTally(limit: limits.tokens)
  }

  public var isOpen: Bool { true }

  // MARK: records

  public var takesWholeRecording: Bool { true }

  public mutating func mark(isSelected: Bool) {
    self.isSelected = isSelected
    inspection.mark(isSelected: isSelected)
  }

  public mutating func select(connection: Int) {
    inspection.select(connection: connection)
    if let index = open.index(of: connection) { noteShown(index) }
  }

  public mutating func receive(_ record: CaptureRecord) {
    inspection.receive(record)
    stories?.receive(record)
    guard report.sources.count < 100 else { return }
    report.sources.append(TraceReport.Source(name: record.source, format: record.format.rawValue))
  }

  public mutating func receive(_ outcome: CaptureOutcome) {
    inspection.receive(outcome)
    stories?.receive(outcome)
  }

  public mutating func opened(connection: Int, at time: Timestamp) {
    inspection.opened(connection: connection, at: time)
    stories?.opened(connection: connection, at: time)
    open.add(Tally(opened: time), number: connection)
    if isSelected, let index = open.index(of: connection) { noteShown(index) }
  }

  private mutating func noteShown(_ index: Int) {
    note(open[index].opened)
    open[index].hasTimeline = timelines < limits.timelines
    timelines += 1
  }

  @inline(__always)
  private mutating func note(_ time: Timestamp) {
    guard time.isKnown else { return }
    if time < first { first = time }
    if time > last { last = time }
  }

  @inline(__always)
  public mutating func receive(_ fields: PushFields, _ frame: RawSpan, at place: RecordPlace, index: Int) {
    inspection.receive(fields, frame, at: place, index: index)
    stories?.receive(fields, frame, at: place, index: index)
    if isSelected { note(fields, frame, place) }
  }

  public mutating func receive(
    malformed problem: String, _ fields: PushFields, _ frame: RawSpan, at place: RecordPlace, index: Int
  ) {
    inspection.receive(malformed: problem, fields, frame, at: place, index: index)
    stories?.receive(malformed: problem, fields, frame, at: place, index: index)
    if isSelected { note(fields, frame, place) }
  }

  public mutating func receive(_ record: borrowing ProviderNotificationRecord) {
    inspection.receive(record)
    stories?.receive(record)
    guard isSelected else { return }
    let token = record.bytes(of: record.request.token)
    note(record.place, priority: record.request.priority, token)
    if !record.request.uncertain.contains(.expiration) {
      note(expiration: record.request.expiration.map { UInt32(clamping: $0) })
    }
  }

  public mutating func receive(_ record: ProviderRecord) {
    inspection.receive(record)
    stories?.receive(record)
    guard isSelected else { return }
    noteRecord(record.place)
    guard case .response(let response) = record, response.notification != nil else { return }
    if let latency = response.latencyNanoseconds, record.place.time.isKnown {
      latencies.change(at: record.place.time) { $0.add(nanoseconds: latency) }
    }
    guard let status = response.status, !(200...299).contains(status) else { return }
    if let index = open.index(of: record.place.connection) { open[index].errorResponses += 1 }
    if record.place.time.isKnown { errors.add(1, bytes: 0, at: record.place.time) }
  }

  public mutating func receive(_ record: MessageRecord) {
    inspection.receive(record)
    stories?.receive(record)
    if isSelected { noteRecord(record.place) }
  }

  @inline(__always)
  private mutating func note(_ fields: PushFields, _ frame: RawSpan, _ place: RecordPlace) {
    note(place, priority: fields.priority, frame.extracting(fields.token.range))
    note(expiration: fields.expiration)
  }

  @inline(__always)
  private mutating func note(_ place: RecordPlace, priority: UInt8?, _ token: RawSpan) {
    report.frameBytes &+= place.length
    priorities[priority.map(Int.init) ?? 256] += 1
    if token.byteCount > 0 {
      let prefix = Self.prefix(token)
      tokens.add(prefix)
      if !listed.isEmpty { noteListed(prefix) }
    }
    if place.packet != run.packet || place.connection != run.connection || place.time != run.time { begin(place) }
    run.notifications += 1
    run.bytes &+= place.length
  }

  /// Seen from the second in which it was written.
  @inline(__always)
  private mutating func note(expiration: UInt32?) {
    guard let expiration else {
      report.expirations.none += 1
      return
    }
    let seconds = Int64(expiration) - run.second
    if expiration == 0 {
      report.expirations.zero += 1
    } else if seconds <= 0 {
      report.expirations.past += 1
    } else if seconds <= 3_600 {
      report.expirations.withinHour += 1
    } else if seconds <= 86_400 {
      report.expirations.withinDay += 1
    } else if seconds <= 2_419_200 {
      report.expirations.withinFourWeeks += 1
    } else {
      report.expirations.later += 1
    }
  }

  /// Counts the notifications that ended in one packet, and begins with the next packet.
  @inline(never)
  private mutating func begin(_ place: RecordPlace) {
    flush()
    run = Run(connection: place.connection, packet: place.packet, time: place.time)
  }

  private mutating func flush() {
    guard run.notifications > 0, let index = open.index(of: run.connection) else { return }
    defer { (run.notifications, run.bytes) = (0, 0) }
    open[index].frameBytes &+= run.bytes
    if PacketNumber.packet(run.packet) > 0 {
      perSegment.add(run.notifications)
      bytesPerSegment.add(run.bytes)
    }
    guard run.time.isKnown else { return }
    note(run.time)
    sent.add(run.notifications, bytes: run.bytes, at: run.time)
    if !open[index].firstRecord.isKnown { open[index].firstRecord = run.time }
    open[index].lastRecord = max(open[index].lastRecord, run.time)
    if open[index].hasTimeline { open[index].sent.add(run.notifications, bytes: run.bytes, at: run.time) }
  }

  @inline(__always)
  private static func prefix(_ token: RawSpan) -> UInt64 {
    token.byteCount >= 8 ? token.uint64(at: 0) : UInt64(token.byte(at: 0)) << 56
  }

  @inline(never)
  private mutating func noteListed(_ prefix: UInt64) {
    guard let known = listed[prefix] else { return }
    report.feedback.sentToLater += 1
    if !known.wasSentTo {
      listed[prefix] = (true, known.isSelected)
      report.feedback.sentToLaterTokens += 1
    }
  }

  public mutating func presented(subject: String, connection: Int) {
    inspection.presented(subject: subject, connection: connection)
  }

  public mutating func segment(notifications: Int, at time: Timestamp) {
    inspection.segment(notifications: notifications, at: time)
  }

  public mutating func receive(_ record: FateRecord) {
    inspection.receive(record)
    stories?.receive(record)
  }

  public mutating func receiveEarly(_ record: ErrorResponseRecord) { inspection.receiveEarly(record) }

  public mutating func receive(_ record: ErrorResponseRecord) {
    inspection.receive(record)
    stories?.receive(record)
    guard isSelected else { return }
    noteRecord(record.place)
    if let index = open.index(of: record.place.connection) { open[index].errorResponses += 1 }
    if record.place.time.isKnown { errors.add(1, bytes: 0, at: record.place.time) }
    if errorTimes.count < limits.inspection.listed { errorTimes.append(record.place.time) }
  }

  public mutating func receive(_ record: borrowing FeedbackRecord) {
    inspection.receive(record)
    stories?.receive(record)
    noteListed(record)
    guard isSelected else { return }
    noteRecord(record.place)
    if record.place.time.isKnown { feedback.add(1, bytes: record.place.length, at: record.place.time) }
    let timestamp = record.tuple.timestamp
    if timestamp > 0 {
      let times = listedTimes ?? timestamp...timestamp
      listedTimes = min(times.lowerBound, timestamp)...max(times.upperBound, timestamp)
      if record.place.time.isKnown {
        ages.add(Double(record.place.time.nanoseconds) / 1e9 - Double(timestamp))
      }
    }
  }

  private mutating func noteListed(_ record: borrowing FeedbackRecord) {
    guard record.tuple.token.byteCount > 0 else { return }
    let prefix = Self.prefix(record.tuple.token)
    if listed[prefix] == nil {
      guard listed.count < limits.tokens else {
        report.feedback.isCut = true
        return
      }
      listed[prefix] = (false, isSelected)
    } else if isSelected {
      listed[prefix]?.isSelected = true
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

  public mutating func receive(_ record: CaptureLossRecord) {
    inspection.receive(record)
    stories?.receive(record)
  }
  public mutating func receive(_ record: GapRecord) {
    inspection.receive(record)
    stories?.receive(record)
  }
  public mutating func receive(_ record: MalformedRecord) {
    inspection.receive(record)
    stories?.receive(record)
  }

  public mutating func receive(_ record: ConnectionRecord) {
    inspection.receive(record)
    stories?.receive(record)
    if run.connection == record.connection { flush() }
    guard var tally = open.remove(record.connection), isSelected else { return }
    note(record.closed)
    guard ended.count < limits.inspection.listed else { return }
    tally.closed = record.closed
    ended.append(tally)
  }

  public mutating func receive(_ record: SummaryRecord) {
    inspection.receive(record)
    stories?.receive(record)
  }

  // MARK: the report

  /// The report of all records. To be called once, when reading has ended.
  ///
  /// - Parameter withCounts: whether the inspection has the counts with which reports are merged.
  public mutating func finish(withCounts: Bool = false) -> TraceReport {
    report.perSegment = perSegment.buckets
    report.bytesPerSegment = bytesPerSegment.buckets
    report.payloads = inspection.shared.payloadLengths.buckets
    report.inspection = inspection.finish(withCounts: withCounts)
    for (priority, count) in priorities.dropLast().enumerated() where count > 0 {
      report.priorities[priority] = count
    }
    report.withoutPriority = priorities.last ?? 0
    finishTimes()
    report.tokens = tokens.report
    report.feedback.tokens = listed.values.count { $0.isSelected }
    report.feedback.ageS = ages.distribution
    report.feedback.firstTimestamp = listedTimes.map { Self.text($0.lowerBound) }
    report.feedback.lastTimestamp = listedTimes.map { Self.text($0.upperBound) }
    return report
  }

  /// Makes times relative to the start, and gives all series the same bins.
  private mutating func finishTimes() {
    if last.isKnown {
      report.started = TimestampFormatter.text(first).prefix(23) + "Z"
      report.lengthS = seconds(last) ?? 0
    }
    let series = ended.filter(\.hasTimeline).map(\.sent) + [sent, errors, feedback]
    let exponent = series.map(\.exponent).max() ?? 0
    sent.join(to: exponent)
    errors.join(to: exponent)
    feedback.join(to: exponent)
    if last.isKnown {
      let width = Double(Int64(1) << Int64(exponent))
      report.sent.widthS = width / 1e9
      report.sent.fromS = (Double(sent.first) * width - Double(first.nanoseconds)) / 1e9
      report.sent.counts = sent.bins.map(\.count)
      report.sent.bytes = sent.bins.map(\.bytes)
      report.errorResponses = errors.counts(like: sent)
      report.feedbackTuples = feedback.counts(like: sent)
    }
    report.latencies = latencySeries
    report.errorTimesS = errorTimes.map(seconds)
    report.connections = ended.map { tally in
      var connection = TraceReport.Connection()
      connection.openedS = seconds(tally.opened)
      connection.firstRecordS = seconds(tally.firstRecord)
      connection.lastRecordS = seconds(tally.lastRecord)
      connection.closedS = seconds(tally.closed)
      connection.frameBytes = tally.frameBytes
      connection.errorResponses = tally.errorResponses
      if tally.hasTimeline {
        var bins = tally.sent
        bins.join(to: exponent)
        connection.sent = bins.counts(like: sent)
      }
      return connection
    }
  }

  private var latencySeries: TraceReport.Latencies? {
    guard first.isKnown, latencies.bins.contains(where: { $0.histogram != nil }) else { return nil }
    let width = Double(Int64(1) << Int64(latencies.exponent))
    var series = TraceReport.Latencies()
    series.widthS = width / 1e9
    series.fromS = (Double(latencies.first) * width - Double(first.nanoseconds)) / 1e9
    for bin in latencies.bins {
      let histogram = bin.histogram
      series.counts.append(histogram?.count ?? 0)
      series.p50Ms.append(histogram.map { Double($0.quantile(0.5)) / 1e3 })
      series.p99Ms.append(histogram.map { Double($0.quantile(0.99)) / 1e3 })
    }
    return series
  }

  /// Since the trace's start; `nil` when it is not known.
  private func seconds(_ time: Timestamp) -> Double? { time.nanoseconds(since: first).map { Double($0) / 1e9 } }

  /// A time of a feedback tuple, to the second.
  private static func text(_ second: UInt32) -> String {
    TimestampFormatter.text(Timestamp(nanoseconds: Int64(second) * 1_000_000_000)).prefix(19) + "Z"
  }
}
