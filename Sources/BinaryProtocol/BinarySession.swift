import PushModel

/// The protocol's implications for one connection, from the provider's side: which notifications were accepted,
/// rejected or discarded, and which have an unknown fate.
///
/// A plain value without I/O or clock. The dissector feeds it the frames of a capture, the load generator its writes.
/// Notifications are numbered from 0 in the order they were written.
///
/// The rules (Apple's guide of 2015-09-16, and what servers were seen to do):
/// - a rejection names one notification: all before it were accepted, all after it discarded;
/// - status 10 (shutdown) names the last *accepted* one: it and all before it were accepted, all after it discarded;
/// - status 0 (sent by mock servers) accepts the notification it names and everything before, and discards nothing;
/// - a later response that names a later notification proves that the notifications between the two were accepted after
///   all;
/// - a response that names nothing known settles nothing: it is counted, and the rest stays unknown;
/// - identifier 0 in a response other than status 0 can mean "failed before the identifier was read": it names the first
///   frame with the fault of the status. Bad items may be answered with status 128, or with that of what the gateway
///   missed in them or could not process (1, 2, 4, 5, 7; when all before have an identifier, and with 5 no token has an
///   odd length); an empty token with status 2, and with 5 when no other token has an odd length and all before it have
///   an identifier; an empty or absent payload with status 4;
/// - status 128 with identifier 0 names none if bytes that are not a frame came before: then it is about those bytes;
/// - with status 7 identifier 0 names the first payload above every gateway's limit, if the writer reports which that
///   is: it requires knowledge of the limit;
/// - otherwise identifier 0 is taken literally if the notification with that identifier has the fault that the status
///   names, or is the only one that was written; if neither, it is ambiguous, and settles nothing;
/// - an identifier that was used several times names its latest use: a client reuses one only when it believes the
///   earlier notification settled.
public struct BinarySession: Sendable {
  /// The interpretation of one response.
  public struct Naming: Sendable, Equatable {
    /// The number of the named notification, from 0; `nil` if none was written with the identifier, or the response is
    /// ambiguous.
    public var notification: Int?
    /// The number of notifications before the named one (with status 10 and 0: including it) that count as accepted,
    /// without those rejected before; `nil` if it names none.
    public var accepted: Int?
    /// The number of written notifications with the identifier. Above 1 the naming is a judgement: the latest is
    /// chosen.
    public var candidates: Int
    /// Whether the identifier is 0 and may be that of a notification or mean none, so that the response names none.
    public var isAmbiguous = false
  }

  /// The number of notifications written so far.
  public private(set) var written = 0
  /// The number of responses that named no known notification.
  public private(set) var unresolvedResponses = 0
  /// Whether the gateway has ended the connection, so that notifications written after the named one are discarded.
  public private(set) var isTerminated = false

  private var history: IdentifierHistory
  private var firstKnownBad: Int?
  private var firstOversize: Int?
  private var firstWithoutPayload: Int?
  /// Some writes were not seen, so the apparent first or only notification may not be it.
  private var hasMissingBytes = false
  /// A token that is neither empty nor 32 bytes long was written.
  private var hasOddToken = false
  private var firstUnreadable = Unreadable.none
  /// The latest notification with identifier 0, and the faults that can be seen in it.
  private var zero: (index: Int, faults: BinaryFaults)?
  /// A notification without an identifier was written; and one was written before `firstKnownBad`.
  private var hasUnidentified = false
  private var hasUnidentifiedBeforeKnownBad = false
  /// The number of notifications that are settled, from the first one: each is accepted or rejected.
  public private(set) var settled = 0
  private var rejections = Rejections()
  /// Whether the gateway's own decisions were applied, so that responses settle nothing.
  private var isToldByGateway = false

  /// Makes the session of a connection on which nothing was written.
  ///
  /// - Parameter maximumIdentifierRuns: the length of the identifiers' history, in runs of evenly spaced identifiers; a
  ///   counter needs one run, random identifiers one run for every two. Older identifiers are forgotten and can no
  ///   longer be resolved.
  public init(maximumIdentifierRuns: Int = 32_768) {
    history = IdentifierHistory(maximumRuns: maximumIdentifierRuns)
  }

  /// Bytes of the identifiers' history.
  package var heldBytes: Int { history.heldBytes }

  /// Forgets the identifiers written so far, as beyond `maximumIdentifierRuns`.
  package mutating func forgetIdentifiers() { history.forget() }

  /// Notes that a frame was written whose items do not fit it, and returns its number.
  ///
  /// - Parameter identifier: the identifier, if its item is among those that fit.
  public mutating func write(malformedWith identifier: UInt32?) -> Int {
    let areIdentified = !hasUnidentified
    let index = write(identifier: identifier, isKnownBad: false)
    if case .none = firstUnreadable { firstUnreadable = .frame(index, areIdentified: areIdentified) }
    return index
  }

  /// Notes that bytes were written that are not a frame.
  public mutating func noteUnreadableBytes() {
    if case .none = firstUnreadable { firstUnreadable = .bytes }
  }

  /// Notes that more was written, before or between, than was seen.
  public mutating func noteMissingBytes() { hasMissingBytes = true }

  /// Notes the visible faults of the notification that was written last. They matter if its identifier is 0, its token
  /// is not 32 bytes long, or its payload is empty.
  public mutating func noteFaults(_ faults: BinaryFaults, identifier: UInt32?) {
    if identifier == 0 { zero = (written - 1, faults) }
    if faults.contains(.missingPayload), firstWithoutPayload == nil { firstWithoutPayload = written - 1 }
    if faults.contains(.tokenSize), !faults.contains(.missingToken) { hasOddToken = true }
  }

  /// Notes in advance that tokens will be written that are neither empty nor 32 bytes long.
  public mutating func noteOddTokens() { hasOddToken = true }

  /// Notes that the payload of the notification that was written last exceeds every gateway's limit, and that no other
  /// payload exceeds any gateway's limit.
  public mutating func noteOversize() {
    if firstOversize == nil { firstOversize = written - 1 }
  }

  /// Notes that the next notification was written; `noteFaults(_:identifier:)` adds details.
  ///
  /// - Parameters:
  ///   - identifier: the identifier; `nil` for command 0, and for a frame without the item.
  ///   - isKnownBad: whether its token is empty, so that it cannot be accepted.
  /// - Returns: the number of the notification, from 0.
  /// - Complexity: amortized O(1); a run of evenly spaced identifiers needs no memory for each.
  public mutating func write(identifier: UInt32?, isKnownBad: Bool) -> Int {
    let index = written
    written += 1
    if isKnownBad && firstKnownBad == nil {
      firstKnownBad = index
      hasUnidentifiedBeforeKnownBad = hasUnidentified
    }
    if let identifier { history.append(identifier, at: index) } else { hasUnidentified = true }
    return index
  }

  /// Applies an error response.
  ///
  /// - Parameters:
  ///   - response: the response.
  ///   - sent: the number of notifications that can have arrived; the response can name only these.
  /// - Returns: the interpretation of the response.
  public mutating func receive(_ response: ErrorResponse, sent: Int = .max) -> Naming {
    let sent = min(sent, written)
    var (named, candidates) = history.find(response.identifier, before: sent)
    if response.identifier == 0, response.status != .noError {
      switch meaningOfZero(response.status, found: named, sent: sent) {
      case .names(let index): (named, candidates) = (index, max(1, candidates))
      case .nothing: named = nil
      case .ambiguous:
        unresolvedResponses += 1
        return Naming(notification: nil, accepted: nil, candidates: candidates, isAmbiguous: true)
      }
    }
    guard let named else {
      unresolvedResponses += 1
      return Naming(notification: nil, accepted: nil, candidates: 0)
    }
    if isToldByGateway {
      let end = named + (response.status.acceptsNamed ? 1 : 0)
      return Naming(notification: named, accepted: end - rejections.count(before: end), candidates: candidates)
    }
    settled = max(settled, named + 1)
    if !response.status.acceptsNamed { rejections.insert(named) }
    if response.status != .noError { isTerminated = true }
    let end = named + (response.status.acceptsNamed ? 1 : 0)
    return Naming(notification: named, accepted: end - rejections.count(before: end), candidates: candidates)
  }

  /// The first thing that a gateway could not parse.
  private enum Unreadable {
    case none
    /// - areIdentified: everything before it has an identifier.
    case frame(Int, areIdentified: Bool)
    case bytes
  }

  private enum MeaningOfZero {
    case names(Int)
    case nothing
    case ambiguous
  }

  /// - Parameters:
  ///   - found: the latest notification with identifier 0.
  ///   - sent: the number of notifications that can have arrived; only one of these can be meant.
  /// Applies the gateway's own decisions on the notifications written so far. They are final: later responses are
  /// interpreted, and settle nothing.
  ///
  /// - Parameters:
  ///   - accepted: the number of notifications that the gateway accepted, all of them before any other.
  ///   - rejects: whether it rejected the notification after these; to be said once.
  ///   - discards: whether it discards everything else.
  public mutating func settle(accepted: Int, rejects: Bool, discards: Bool) {
    isToldByGateway = true
    settled = max(settled, min(accepted, written))
    if discards { isTerminated = true }
    guard rejects, settled < written else { return }
    rejections.insert(settled)
    settled += 1
  }

  private func meaningOfZero(_ status: ErrorResponse.Status, found: Int?, sent: Int) -> MeaningOfZero {
    if case .bytes = firstUnreadable, status == .protocolError { return .nothing }
    var first = Int.max
    func note(_ index: Int?) { if let index, index < sent { first = min(first, index) } }
    if case .frame(let index, let areIdentified) = firstUnreadable,
      status == .protocolError
        || status.mayMeanBadItems && areIdentified && !(status == .invalidTokenSize && hasOddToken)
    {
      note(index)
    }
    switch status {
    case .missingDeviceToken: note(firstKnownBad)
    case .missingPayload: note(firstWithoutPayload)
    case .invalidTokenSize: if !hasUnidentifiedBeforeKnownBad, !hasOddToken { note(firstKnownBad) }
    case .invalidPayloadSize: note(firstOversize)
    default: break
    }
    // The gateway reads no further than the first of these notifications.
    if let zero, zero.index == found, zero.faults.explains(status), first < .max { note(zero.index) }
    if first < .max { return .names(first) }
    guard let found else { return .nothing }
    if sent == 1, !hasMissingBytes { return .names(found) }
    if let zero, zero.index == found, zero.faults.explains(status) { return .names(found) }
    // The topic is the connection's, so the first notification already has the fault.
    if found == 0, !hasMissingBytes, status == .missingTopic || status == .invalidTopicSize { return .names(found) }
    return .ambiguous
  }

  /// The current fates. Before the end of the connection, `unknown` includes notifications in flight.
  public var fates: FateCounts {
    var fates = FateCounts()
    fates.rejected = rejections.count
    fates.accepted = settled - rejections.count
    let rest = written - settled
    if isTerminated { fates.discarded = rest } else { fates.unknown = rest }
    return fates
  }

  /// The number of notifications whose fate is final: no later response changes it.
  public var final: Int { rejections.floor }

  /// The current fates of a range of notifications: runs of equal fates, in order and without gaps.
  ///
  /// - Parameters:
  ///   - range: notifications that were written. It must not begin before the value that `final` had before the last
  ///     response that changed it, because rejections of earlier notifications are forgotten.
  ///   - body: receives each run and its fate.
  public func forEachFate(in range: Range<Int>, _ body: (Range<Int>, Fate) -> Void) {
    var next = range.lowerBound
    func pass(to end: Int, _ fate: Fate) {
      guard end > next else { return }
      body(next..<end, fate)
      next = end
    }
    let end = max(next, min(range.upperBound, settled))
    // Notifications from `next` up to here are known to be rejected.
    var rejectedEnd = next
    rejections.forEach(in: next..<end) { index in
      if index > rejectedEnd {
        pass(to: rejectedEnd, .rejected)
        pass(to: index, .accepted)
      }
      rejectedEnd = index + 1
    }
    pass(to: rejectedEnd, .rejected)
    pass(to: end, .accepted)
    pass(to: range.upperBound, isTerminated ? .discarded : .unknown)
  }

  /// The number of rejected notifications before `index`; at most the settled ones if there were more rejections than
  /// are kept.
  public func rejected(before index: Int) -> Int { rejections.count(before: index) }

  /// The number of notifications written after the one that the deciding response named.
  public func discarded(after notification: Int) -> Int {
    isTerminated && notification + 1 == settled ? written - settled : 0
  }
}

extension ErrorResponse.Status {
  /// The notification that the response names was accepted, not rejected.
  package var acceptsNamed: Bool { self == .noError || self == .shutdown }

  /// Servers were seen to answer a frame whose items do not fit with this status instead of 128: the status of what was
  /// then missing, too long or too short, or could not be processed.
  var mayMeanBadItems: Bool {
    switch self {
    case .processingError, .missingDeviceToken, .missingPayload, .invalidTokenSize, .invalidPayloadSize: true
    default: false
    }
  }
}

/// The rejected notifications of one connection, by number.
///
/// The documented service rejects one and closes; mock servers were seen to answer many. At most 4,096 are kept, so
/// that memory is bounded; the lowest are forgotten first and only counted. A response that names a number below the
/// highest forgotten one counts as repeated, so that no notification is counted twice.
private struct Rejections: Sendable {
  private static let maximumKept = 4_096
  private var kept: [Int] = []
  private var forgotten = 0
  /// The rejections that were forgotten last, in ascending order.
  private var lastForgotten: [Int] = []
  /// The number after the highest forgotten rejection.
  private(set) var floor = 0

  var count: Int { forgotten + kept.count }

  mutating func insert(_ index: Int) {
    guard index >= floor else { return }
    let position = insertionPoint(index)
    if position < kept.count && kept[position] == index { return }
    kept.insert(index, at: position)
    if kept.count > Self.maximumKept {
      let half = Self.maximumKept / 2
      floor = kept[half - 1] + 1
      lastForgotten = Array(kept[..<half])
      kept.removeFirst(half)
      forgotten += half
    }
  }

  /// The rejections in a range, in ascending order; below `floor` only those that were forgotten last.
  func forEach(in range: Range<Int>, _ body: (Int) -> Void) {
    if range.lowerBound < floor {
      for index in lastForgotten where range.contains(index) { body(index) }
    }
    for index in kept[insertionPoint(range.lowerBound)...] {
      guard index < range.upperBound else { return }
      body(index)
    }
  }

  /// The number of rejections before `index`. Below `floor` they are unknown, and as many as possible are assumed.
  func count(before index: Int) -> Int { index < floor ? min(index, forgotten) : forgotten + insertionPoint(index) }

  /// The first position whose number is not below `index`; new numbers are nearly always the highest.
  private func insertionPoint(_ index: Int) -> Int {
    if let last = kept.last, last < index { return kept.count }
    var (low, high) = (0, kept.count)
    while low < high {
      let middle = (low + high) / 2
      if kept[middle] < index { low = middle + 1 } else { high = middle }
    }
    return low
  }
}
