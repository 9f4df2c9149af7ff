import BinaryProtocol
import Bytes
import Measurement
import PacketCapture
import Records
import TLSDecryption

/// Where a recording may hide sendings of a notification: the parts of providers' connections that it does not show.
///
/// It receives the records of a whole recording. Every outcome is checked against it: an outcome that another sending
/// would refute is stated only if no part of the recording could hide one.
///
///     │◀─ before ─▶│ recording of a connection: SYN … bytes … gap … bytes … FIN │◀─ after ─▶│
///
/// A gap, an undecrypted or unread connection and packets that were dropped may hold any notification, at any time.
/// Before the first and after the last packet of the recording, or of a connection, one may be hidden within the time
/// in which providers resend: the longest such time in the recording, and for discarded notifications at least
/// `resendWithin`.
struct UnseenSendings {
  /// The assumed time, in nanoseconds, within which providers resend what was discarded, unless the recording shows
  /// that they take longer.
  static let usualResendWithin: Int64 = 60_000_000_000
  /// The least such time for outcomes other than lost, at the end of a connection, in nanoseconds: a provider that has
  /// an answer has no reason to resend, so only the recording's own times are assumed.
  fileprivate static let shortResend: Int64 = 1_000_000_000
  /// A longer pause between files of a recording may be a missing file; in nanoseconds.
  private static let longestPause: Int64 = 1_000_000_000
  /// The number of connections, of topics and of intervals that are kept apart; further ones widen what may be hidden.
  private static let limit = 1 << 16

  /// The parts of one provider's connections that the recording does not show.
  fileprivate struct Places {
    var gaps = 0
    var gapBytes = 0
    var undecrypted = 0
    var unread = 0
    /// The latest first packet of a connection whose beginning was not captured.
    var latestStart = Int64.min
    /// Connections whose end was not captured: the interval in which each may have carried more.
    var ends: [(from: Int64, to: Int64)] = []

    /// - Parameter keepsAll: `false`: an interval is merged into the last one, which may then hide more.
    mutating func add(_ other: Places, keepsAll: Bool = true) {
      gaps += other.gaps
      gapBytes += other.gapBytes
      undecrypted += other.undecrypted
      unread += other.unread
      latestStart = max(latestStart, other.latestStart)
      for end in other.ends {
        guard !keepsAll, let last = ends.popLast() else {
          ends.append(end)
          continue
        }
        ends.append((min(last.from, end.from), max(last.to, end.to)))
      }
    }
  }

  /// A connection whose record has not come.
  private struct Pending {
    var gaps = 0
    var gapBytes = 0
    /// An error response ended it: notifications written after the named one were discarded.
    var isTerminated = false
  }

  /// By topic; `.zero`: connections that do not show theirs.
  private var places: [ContentKey: Places] = [:]
  /// Those that may hold requests of the provider API: each connection may carry any topic.
  private var requestPlaces = Places()
  /// A request is of no known notification.
  private var hasUncertain = false
  /// Requests with a topic, and requests without, whose topic is that of a certificate.
  private var topics = (shown: false, absent: false)
  private var pending: [Int: Pending] = [:]
  /// The number of intervals of all places.
  private var intervals = 0
  /// The same of `requestPlaces`.
  private var requestIntervals = 0
  private var dropped = 0
  private var hasUnreadPackets = false
  /// The records are a selection; another part of the recording was not read.
  private var isSelection = false
  /// The records are a gateway's own, to which nothing was sent before.
  private var isObserved = false
  var isPart: Bool
  private let resendWithin: Int64
  /// The files' first and last packets.
  private var files: [(first: Int64, last: Int64)] = []
  /// The earliest and latest time that a record has.
  private var first = Timestamp(nanoseconds: .max)
  private var last = Timestamp.none

  /// - Parameters:
  ///   - resendWithin: the least time within which providers resend what was discarded, in nanoseconds.
  ///   - isPart: other connections of the recording are not read.
  init(resendWithin: Int64 = usualResendWithin, isPart: Bool = false) {
    self.resendWithin = resendWithin
    self.isPart = isPart
  }

  // MARK: records

  mutating func note(_ time: Timestamp) {
    guard time.isKnown else { return }
    if time < first { first = time }
    if time > last { last = time }
  }

  mutating func note(_ record: CaptureRecord) {
    if record.isOfSelection { isSelection = true }
    if record.isObserved { isObserved = true }
  }

  mutating func note(_ outcome: CaptureOutcome) {
    if outcome.unread.hidingPackets > 0 { hasUnreadPackets = true }
    note(outcome.firstTime)
    note(outcome.lastTime)
    guard outcome.firstTime.isKnown, outcome.lastTime.isKnown else { return }
    files.append((outcome.firstTime.nanoseconds, outcome.lastTime.nanoseconds))
    guard files.count > Self.limit else { return }
    files = [(files.map(\.first).min() ?? 0, files.map(\.last).max() ?? 0)]
  }

  mutating func note(_ record: CaptureLossRecord) { dropped += record.loss.dropped }

  mutating func note(_ record: GapRecord) {
    note(record.place.time)
    // A gateway has accepted no frame of which it did not get the end.
    guard record.direction == .client, !(isObserved && record.reason == .captureEnd) else { return }
    change(record.place.connection) {
      $0.gaps += 1
      $0.gapBytes += record.place.length
    }
  }

  mutating func note(_ record: ErrorResponseRecord) {
    note(record.place.time)
    guard record.notification != nil, record.response.status != .noError else { return }
    change(record.place.connection) { $0.isTerminated = true }
  }

  /// A request of the provider API cannot be recognised: it may be a sending of any notification.
  ///
  /// - Parameter hasEnded: its end is there. A gateway has accepted none of which it did not get the end.
  mutating func noteUncertain(hasEnded: Bool) { if hasEnded || !isObserved { hasUncertain = true } }

  /// - Parameter isShown: the request has a topic.
  mutating func noteTopic(isShown: Bool) { if isShown { topics.shown = true } else { topics.absent = true } }

  private mutating func change(_ connection: Int, _ body: (inout Pending) -> Void) {
    if pending[connection] != nil || pending.count < Self.limit {
      body(&pending[connection, default: Pending()])
    } else {
      var one = Pending()
      body(&one)
      places[.zero, default: Places()].gaps += one.gaps
      places[.zero, default: Places()].gapBytes += one.gapBytes
      requestPlaces.gaps += one.gaps
      requestPlaces.gapBytes += one.gapBytes
    }
  }

  mutating func note(_ record: ConnectionRecord) {
    note(record.opened)
    note(record.closed)
    let known = pending.removeValue(forKey: record.connection) ?? Pending()
    if let places = Self.requestPlaces(of: record, known) {
      requestIntervals += places.ends.count
      requestPlaces.add(places, keepsAll: requestIntervals <= Self.limit)
    }
    guard let new = Self.places(of: record, known) else { return }
    let topic = record.tls?.topic ?? .zero
    let isKept = places[topic] != nil || places.count < Self.limit
    intervals += new.ends.count
    places[isKept ? topic : .zero, default: Places()].add(new, keepsAll: intervals <= Self.limit)
  }

  /// The parts of a connection that are not shown; `nil`: it can hide no notification.
  private static func places(of record: ConnectionRecord, _ known: Pending) -> Places? {
    if record.service == .feedback { return nil }
    var places = Places()
    if let tls = record.tls, !tls.isWhole, record.otherProtocol == nil || record.otherProtocol == .tls {
      // Gaps say what of a connection was not decrypted, if there are any.
      if !tls.isDecrypted || known.gaps == 0 { places.undecrypted = 1 }
    }
    guard record.otherProtocol == nil else { return places.undecrypted > 0 ? places : nil }
    let isEmpty = record.clientBytes + record.serverBytes + record.missingBytes == 0
    (places.gaps, places.gapBytes) = (known.gaps, known.gapBytes)
    if record.service == .unknown {
      // Without bytes, and on a port of no known service, it is one of many irrelevant connections.
      if isEmpty { return nil }
      // The bytes that would identify it may be missing, and no gap was reported for either service.
      if record.missingBytes > 0, known.gaps == 0 { (places.gaps, places.gapBytes) = (1, record.missingBytes) }
      if places.undecrypted == 0, places.gaps == 0 || record.tls == nil { places.unread = 1 }
    }
    let missing = record.notCaptured
    if missing.start { places.latestStart = record.opened.isKnown ? record.opened.nanoseconds : .max }
    if let open = missing.client, !known.isTerminated {
      places.ends = [(open.since.isKnown ? open.since.nanoseconds : .min, open.until?.nanoseconds ?? .max)]
    }
    return places
  }

  /// The parts of a connection that are not shown and may hold requests; `nil`: it can hide none. HTTP/2 that nobody
  /// could read may be a provider's, and so may everything that is not known to be something else.
  private static func requestPlaces(of record: ConnectionRecord, _ known: Pending) -> Places? {
    guard record.otherProtocol == .http2 || record.mayBeHTTP2 else {
      let isRead = record.tls?.isDecrypted ?? true
      // The binary protocol is known by its bytes; undecrypted, the port may be that of channel management.
      if isRead, record.service == .gateway || record.service == .feedback { return nil }
      return places(of: record, known)
    }
    var places = Places()
    if let tls = record.tls, !tls.isWhole, !tls.isDecrypted || known.gaps == 0 { places.undecrypted = 1 }
    (places.gaps, places.gapBytes) = (known.gaps, known.gapBytes)
    if record.http2 == nil, places.undecrypted == 0 { places.unread = 1 }
    if record.missingBytes > 0, known.gaps == 0, record.http2 == nil {
      (places.gaps, places.gapBytes) = (1, record.missingBytes)
    }
    // What is left of HTTP/2 that is no provider's is none either.
    if record.http2 != nil, record.service == .other, places.gaps + places.undecrypted == 0 { return nil }
    let missing = record.notCaptured
    if missing.start { places.latestStart = record.opened.isKnown ? record.opened.nanoseconds : .max }
    if let open = missing.client {
      places.ends = [(open.since.isKnown ? open.since.nanoseconds : .min, open.until?.nanoseconds ?? .max)]
    }
    return places
  }

  // MARK: what may be hidden

  /// A view for looking up many notifications, after everything was read.
  ///
  /// - Parameters:
  ///   - longestResend: the longest time from a sending that was not accepted to the next one, in nanoseconds.
  func view(longestResend: Int64) -> View {
    var all = self
    for connection in pending.values {
      all.places[.zero, default: Places()].gaps += connection.gaps
      all.places[.zero, default: Places()].gapBytes += connection.gapBytes
      all.requestPlaces.gaps += connection.gaps
      all.requestPlaces.gapBytes += connection.gapBytes
    }
    var everything = Places()
    for places in all.places.values { everything.add(places) }
    return View(
      common: common, everything: View.Sealed(everything), byTopic: all.places.mapValues(View.Sealed.init),
      requests: View.Sealed(all.requestPlaces), hasUncertain: hasUncertain,
      areTopicsMixed: topics.shown && topics.absent,
      longestResend: longestResend, resendWithin: resendWithin,
      pauses: pauses, start: isObserved ? .min : first.nanoseconds, end: last.nanoseconds, hasTimes: last.isKnown)
  }

  /// A reason that concerns all notifications.
  private var common: OpenReason? {
    if isSelection { return .selection }
    if isPart { return .otherPart }
    if dropped > 0 { return .captureLoss }
    return hasUnreadPackets ? .unreadPackets : nil
  }

  /// The pauses between files.
  private var pauses: [(from: Int64, to: Int64)] {
    var pauses: [(from: Int64, to: Int64)] = []
    var end: Int64?
    for file in files.sorted(by: { $0 < $1 }) {
      if let end, file.first - end > Self.longestPause { pauses.append((end, file.first)) }
      end = max(end ?? file.last, file.last)
    }
    return pauses
  }

  /// Looks up hidden parts for one notification after the other.
  struct View {
    /// Intervals in the order of their beginnings, each with the latest end up to it.
    fileprivate struct Sealed {
      var places: Places

      init(_ places: Places) {
        self.places = places
        self.places.ends.sort { $0.from < $1.from }
        for index in self.places.ends.indices.dropFirst() {
          self.places.ends[index].to = max(self.places.ends[index].to, self.places.ends[index - 1].to)
        }
      }

      /// Whether one of the intervals overlaps this one.
      func hasEnd(from: Int64, to: Int64) -> Bool {
        var (low, high) = (0, places.ends.count)
        while low < high {
          let middle = (low + high) / 2
          if places.ends[middle].from <= to { low = middle + 1 } else { high = middle }
        }
        return low > 0 && places.ends[low - 1].to >= from
      }
    }

    fileprivate let common: OpenReason?
    fileprivate let everything: Sealed
    fileprivate let byTopic: [ContentKey: Sealed]
    fileprivate let requests: Sealed
    fileprivate let hasUncertain: Bool
    fileprivate let areTopicsMixed: Bool
    fileprivate let longestResend: Int64
    fileprivate let resendWithin: Int64
    fileprivate let pauses: [(from: Int64, to: Int64)]
    fileprivate let start: Int64
    fileprivate let end: Int64
    fileprivate let hasTimes: Bool

    /// Gaps in what providers sent, and their bytes.
    var gaps: (count: Int, bytes: Int) {
      // Those of connections of an unknown protocol are in both.
      let isOfRequests = requests.places.gaps > everything.places.gaps
      let places = isOfRequests ? requests.places : everything.places
      return (places.gaps, places.gapBytes)
    }

    /// The reason why a sending that would change a notification's outcome may be hidden; `nil`: none can be.
    ///
    /// - Parameters:
    ///   - seen: its outcome by the captured sendings.
    ///   - first: the time of its first sending, in nanoseconds.
    ///   - last: the time of its last sending, in nanoseconds.
    ///   - topic: its topic; `.zero`: unknown, so its connections may be any provider's.
    ///   - isOfUnknownProvider: its content was sent on several connections, of which only some show their topic.
    ///   - isRequest: it was sent to the HTTP/2 provider API.
    func reason(
      against seen: StoryOutcome, first: Int64, last: Int64, topic: ContentKey, isOfUnknownProvider: Bool,
      isRequest: Bool = false
    ) -> OpenReason? {
      switch seen {
      // A further sending changes nothing that is said.
      case .acceptedTwice, .accepted, .open: return nil
      case .lost, .rejected, .recovered, .expired: break
      }
      if let common { return common }
      func holds(_ isPlace: (Sealed) -> Bool) -> Bool {
        if isRequest { return isPlace(requests) }
        if topic == .zero { return isPlace(everything) }
        return byTopic[topic].map(isPlace) == true || byTopic[.zero].map(isPlace) == true
      }
      if holds({ $0.places.gaps > 0 }) { return .gap }
      if isRequest, hasUncertain { return .uncertainFields }
      if holds({ $0.places.undecrypted > 0 }) { return .undecrypted }
      if holds({ $0.places.unread > 0 }) { return .unreadConnection }
      if isOfUnknownProvider || isRequest && areTopicsMixed { return .unknownProvider }
      let isLost = seen == .lost
      let isTimed = hasTimes && Timestamp(nanoseconds: first).isKnown && Timestamp(nanoseconds: last).isKnown
      func span(_ time: Int64) -> (from: Int64, to: Int64) {
        guard isTimed else { return (.min, .max) }
        let (from, to) = (first.subtractingReportingOverflow(time), last.addingReportingOverflow(time))
        return (from.overflow ? .min : from.partialValue, to.overflow ? .max : to.partialValue)
      }
      let near = span(max(longestResend, isLost ? resendWithin : UnseenSendings.shortResend))
      if holds({ $0.places.latestStart > near.from }) { return .connectionStart }
      if holds({ $0.hasEnd(from: near.from, to: near.to) }) { return .connectionEnd }
      guard isLost else { return isTimed && span(longestResend).to > end ? .afterRecording : nil }
      if !isTimed { return .noTimes }
      // Pauses are in order, and none overlaps another.
      var (low, high) = (0, pauses.count)
      while low < high {
        let middle = (low + high) / 2
        if pauses[middle].to < near.from { low = middle + 1 } else { high = middle }
      }
      if low < pauses.count, pauses[low].from <= near.to { return .betweenFiles }
      if near.from < start { return .beforeRecording }
      return near.to > end ? .afterRecording : nil
    }
  }
}

extension ConnectionRecord {
  /// Whether it is TLS that nobody could read and that HTTP/2 may be in: what a client offers first is not what the
  /// server takes.
  var mayBeHTTP2: Bool {
    guard let tls, !tls.isDecrypted, tls.chosenProtocol != "http/1.1" else { return false }
    return otherProtocol == .http2 || otherProtocol == .http1
  }
}

extension TLSSummary {
  /// The key of the topics that the client's certificate names; `nil`: it was not seen, or names none.
  var topic: ContentKey? {
    let topics = topics
    return topics.isEmpty ? nil : ContentKey(topics: topics)
  }
}

extension ContentKey {
  init(topics: [String]) {
    let name = Array(topics.joined(separator: " ").utf8)
    self.init(name.rawBytes, in: .present)
  }
}
