import PushModel

/// The protocol's implications for one connection, from the provider's side: which notifications were accepted, rejected,
/// discarded, and which are left open.
///
/// A plain value without I/O or clock. The dissector feeds it the frames of a capture, the load generator its writes.
/// Notifications are numbered from 0 in the order they were written.
///
/// The rules (Apple's guide of 2015-09-16, and what servers were seen to do):
/// - a rejection names one notification: all before it were accepted, all after it discarded;
/// - status 10 (shutdown) names the last *accepted* one: it and all before it were accepted, all after it discarded;
/// - status 0 (sent by mock servers) accepts the notification it names and everything before, and discards nothing;
/// - a later response that names a later notification proves that those between were taken after all;
/// - a response that names nothing known settles nothing: it is counted, and the rest stays unknown;
/// - identifier 0 in a response other than status 0 can mean "failed before the identifier was read": it names the first
///   frame with the fault of the status. Bad items may be answered with status 128, or with that of what the gateway
///   missed in them or could not process (1, 2, 4, 5, 7; when all before have an identifier, and with 5 no token has an
///   odd length); an empty token with status 2, and with 5 when no other token has an odd length and all before it have
///   an identifier; an empty or absent payload with status 4;
/// - status 128 with identifier 0 names none if bytes that are not a frame came before: then it is about those bytes;
/// - with status 7 identifier 0 names the first payload above every gateway's limit, if the writer reports which that
///   is: it requires knowledge of the limit;
/// - else identifier 0 is taken at its word when the notification with that identifier shows the fault that the status
///   names, or is the only one that was written; it is ambiguous when it is not, and settles nothing;
/// - an identifier that was used several times names its latest use: a client reuses one only when it believes the
///   earlier notification settled.
public struct BinarySession: Sendable {
  /// The interpretation of one response.
  public struct Naming: Sendable, Equatable {
    /// The notification it names; `nil` when none such was written.
    public var notification: Int?
    /// How many notifications before it (status 10 and 0: including it) count as accepted; `nil` when it names none.
    /// One that was rejected before does not.
    public var accepted: Int?
    /// How many written notifications the identifier fits. Above 1 the naming is a judgement (the latest was taken).
    public var candidates: Int
    /// Identifier 0, which may be that of a notification or mean none: it names no notification.
    public var isAmbiguous = false
  }

  /// Notifications written so far.
  public private(set) var written = 0
  /// Responses that named nothing known.
  public private(set) var unresolvedResponses = 0
  /// The gateway has ended the connection: notifications written after the named one are discarded.
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
  /// A notification without an identifier was written; and one was before `firstKnownBad`.
  private var hasUnidentified = false
  private var hasUnidentifiedBeforeKnownBad = false
  /// Everything before this index is settled: accepted or rejected.
  public private(set) var settled = 0
  private var rejections = Rejections()

  /// - Parameter maximumIdentifierRuns: how much of the identifiers' history is kept, in runs of evenly spaced ones; a
  ///   counter needs one run, random identifiers one for every two. Older ones are forgotten and can no longer be named.
  public init(maximumIdentifierRuns: Int = 32_768) {
    history = IdentifierHistory(maximumRuns: maximumIdentifierRuns)
  }

  /// Bytes of the identifiers' history.
  package var heldBytes: Int { history.heldBytes }

  /// Forgets the identifiers written so far, as beyond `maximumIdentifierRuns`.
  package mutating func forgetIdentifiers() { history.forget() }

  /// Notes that the next frame was written, whose items do not fit it, and returns its number.
  ///
  /// - Parameter identifier: when its item is among those that do fit.
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

  /// Notes the faults that can be seen in the notification that was written last. They matter for one whose identifier
  /// is 0, whose token is not 32 bytes long, or whose payload is empty.
  public mutating func noteFaults(_ faults: BinaryFaults, identifier: UInt32?) {
    if identifier == 0 { zero = (written - 1, faults) }
    if faults.contains(.missingPayload), firstWithoutPayload == nil { firstWithoutPayload = written - 1 }
    if faults.contains(.tokenSize), !faults.contains(.missingToken) { hasOddToken = true }
  }

  /// Notes that tokens that are neither empty nor 32 bytes long are written, before any is.
  public mutating func noteOddTokens() { hasOddToken = true }

  /// Notes that the payload of the notification that was written last is longer than any gateway takes, and that no
  /// other's is longer than what every gateway takes.
  public mutating func noteOversize() {
    if firstOversize == nil { firstOversize = written - 1 }
  }

  /// Notes that the next notification was written, and returns its number; `noteFaults` says more about it.
  ///
  /// - Parameter isKnownBad: its token is empty, so that it cannot be accepted.
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
  /// - Parameter sent: how many of the notifications can have arrived: it is about none of the others.
  public mutating func receive(_ response: ErrorResponse, sent: Int = .max) -> Naming {
    let sent = min(sent, written)
    var (named, candidates) = history.find(response.identifier, before: sent)
    if response.identifier == 0, response.status != .noError {
      switch meaningOfZero(response.status, found: named, sent: sent) {
      case .names(let index): (named, candidates) = (index, max(1, candidates))
      case .nothing: (named, candidates) = (nil, 0)
      case .ambiguous:
        unresolvedResponses += 1
        return Naming(notification: nil, accepted: nil, candidates: candidates, isAmbiguous: true)
      }
    }
    guard let named else {
      unresolvedResponses += 1
      return Naming(notification: nil, accepted: nil, candidates: 0)
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
  ///   - sent: notifications that can have arrived; the meaning is one of these.
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
    // The gateway reads no further than to the first of them.
    if let zero, zero.index == found, zero.faults.explains(status), first < .max { note(zero.index) }
    if first < .max { return .names(first) }
    guard let found else { return .nothing }
    if sent == 1, !hasMissingBytes { return .names(found) }
    if let zero, zero.index == found, zero.faults.explains(status) { return .names(found) }
    // The topic is the connection's, so its fault is that of the first notification.
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

  /// The fate of every notification before this one is final: no later response changes it.
  public var final: Int { rejections.floor }

  /// The current fates of a range of notifications: runs of equal fates, in order and without gaps.
  ///
  /// - Parameter range: notifications that were written. It must not begin before the value that `final` had before the
  ///   last response that changed it: which of the earlier ones were rejected is no longer known.
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

  /// How many of the notifications before `index` were rejected; at most the settled ones when there were more
  /// rejections than are kept.
  public func rejected(before index: Int) -> Int { rejections.count(before: index) }

  /// How many notifications were written after the one that the deciding response named.
  public func discarded(after notification: Int) -> Int {
    isTerminated && notification + 1 == settled ? written - settled : 0
  }
}

extension ErrorResponse.Status {
  /// The notification that the response names was accepted, not rejected.
  package var acceptsNamed: Bool { self == .noError || self == .shutdown }

  /// Servers were seen to answer a frame whose items do not fit with it and not with 128: with what they then missed,
  /// took for too long or too short, or could not process.
  var mayMeanBadItems: Bool {
    switch self {
    case .processingError, .missingDeviceToken, .missingPayload, .invalidTokenSize, .invalidPayloadSize: true
    default: false
    }
  }
}

/// The rejected notifications of one connection, by number.
///
/// The documented service rejects one and closes; mock servers were seen to answer many. At most 4,096 are kept, so that
/// memory is bounded; the lowest are forgotten first and only counted. A response that names one below the highest
/// forgotten counts as a repeated one, so that no notification is ever counted twice.
private struct Rejections: Sendable {
  private static let maximumKept = 4_096
  private var kept: [Int] = []
  private var forgotten = 0
  /// The ones removed last, in order.
  private var lastForgotten: [Int] = []
  /// Above the highest forgotten one.
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

  /// The rejected ones of a range, in order; of those below `floor` only the last ones that were removed.
  func forEach(in range: Range<Int>, _ body: (Int) -> Void) {
    if range.lowerBound < floor {
      for index in lastForgotten where range.contains(index) { body(index) }
    }
    for index in kept[insertionPoint(range.lowerBound)...] {
      guard index < range.upperBound else { return }
      body(index)
    }
  }

  /// Below `floor` the rejected ones are no longer known; as many as possible are assumed to be before `index`.
  func count(before index: Int) -> Int { index < floor ? min(index, forgotten) : forgotten + insertionPoint(index) }

  /// The first position whose number is not below `index`; new ones are nearly always the highest.
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
