import Bytes

/// Finds flows of a capture that are one connection, recorded more than once under different addresses.
///
/// `tcpdump -i any` on a host with containers records a packet on each interface that it passes: on some before its
/// addresses are translated, on others after. Translation keeps sequence numbers and bytes. So a flow that begins at
/// the sequence numbers of another connection is *pending*: its segments are held until one with data equals a segment
/// of the other connection captured within a millisecond, or the data of two segments begin alike. Then the flow is a
/// *view* of that connection. If neither has data, two equal sequence or acknowledgement numbers suffice at the end. A
/// flow is a connection of its own if it has different data at the same sequence number, another initial sequence
/// number of the server, or the same data at another time.
///
/// A value without streams: it takes segments and returns what they prove. `TCPReassembler` acts on the results.
struct ConnectionViews {
  /// A connection that a pending flow may be a view of.
  struct Candidate {
    let slot: Int
    /// Distinguishes the connections that use a slot one after another.
    let opened: Int
    /// Whether the low endpoint of one flow corresponds to the high endpoint of the other.
    let isFlipped: Bool
    /// Whether the flow begins in the middle of its streams.
    let isInMiddle: Bool
    /// The number of equal sequence and acknowledgement numbers in segments without data.
    fileprivate var numbers = 0
    /// The number of segments whose data begin alike.
    fileprivate var beginnings = 0

    init(slot: Int, opened: Int, isFlipped: Bool, isInMiddle: Bool = false) {
      (self.slot, self.opened, self.isFlipped, self.isInMiddle) = (slot, opened, isFlipped, isInMiddle)
    }

    func map(_ direction: FlowDirection) -> FlowDirection { isFlipped ? direction.opposite : direction }
  }

  /// A segment of a pending flow.
  struct Held {
    let segment: TCPSegment
    let direction: FlowDirection
    let bytes: [UInt8]
    let time: Timestamp
    let packet: Int
    /// The number of the segment among those of all flows.
    let serial: Int
    fileprivate let print: SegmentPrint
    fileprivate var isMatched = false

    fileprivate var hasData: Bool { segment.payloadLength > 0 }
    fileprivate var cost: Int { bytes.count + DirectionalStream.pieceOverhead }
  }

  struct Pending {
    let flow: Flow
    /// The client's initial sequence number and direction, if its SYN or the SYN-ACK was captured.
    fileprivate let initial: UInt32?
    fileprivate let client: FlowDirection?
    fileprivate(set) var candidates: [Candidate]
    fileprivate(set) var held: [Held] = []
    fileprivate var cost = 0

    var hasData: Bool { held.contains(where: \.hasData) }

    /// Whether the segment is a SYN of another connection than the one that began the flow.
    func isBegunAnew(by segment: TCPSegment) -> Bool {
      guard let number = ConnectionViews.initialNumber(segment) else { return false }
      return initial != nil && number != initial
    }
  }

  /// A flow that was found to be a view of a connection.
  struct View {
    let slot: Int
    let isFlipped: Bool
  }

  /// The state of a connection while flows are compared with it, and while it has views.
  private struct Watch {
    var prints: [SegmentPrint] = []
    var pending: [Int] = []
    var views: [View] = []
  }

  enum Verdict {
    case undecided
    case view(of: Candidate)
    /// No candidate is left.
    case other
    case own
  }

  /// The beginning of a connection.
  private struct Beginning {
    var slot: Int
    var opened: Int
    var client: FlowDirection
    var time: Timestamp
  }

  static let maximumCandidates = 16
  /// The most pending flows with one candidate or one initial sequence number. The limit also bounds the work of
  /// settling one flow.
  private static let maximumPending = 16
  /// The most connections that are kept with the same initial sequence number of the client.
  private static let maximumAlike = 64
  /// The most segments, and the most bytes, that a pending flow holds.
  private static let maximumHeld = 64
  private static let maximumHeldBytes = 1 << 18
  /// The number of segments with data but without a match after which no match is expected.
  private static let maximumUnmatched = 4
  /// The most segments of a connection that are kept for comparison.
  private static let maximumPrints = 64

  private let window: Int64
  private let maximumBeginnings: Int
  private let maximumCost: Int
  /// Beginnings by the client's initial sequence number, and these numbers in the order of time.
  private var beginnings: [UInt32: [Beginning]] = [:]
  private var order: [(number: UInt32, time: Timestamp)] = []
  private var orderHead = 0
  private(set) var pending: [Int: Pending] = [:]
  /// Pending flows by the client's initial sequence number.
  private var pendingByNumber: [UInt32: [Int]] = [:]
  private var watches: [Int: Watch] = [:]
  /// The bytes of all held segments, including overhead.
  private var cost = 0
  /// Connections that are no longer watched.
  private(set) var idle: [Int] = []

  init(_ options: ReassemblyOptions) {
    window = options.maximumViewDelay
    maximumBeginnings = options.maximumComparedConnections
    maximumCost = options.maximumTotalBufferedBytes
  }

  func isNear(_ a: Timestamp, _ b: Timestamp) -> Bool {
    guard let distance = a.nanoseconds(since: b) else { return false }
    return (-window...window).contains(distance)
  }

  // MARK: beginnings

  /// The client's initial sequence number: that of a SYN, or the number before the one that a SYN-ACK acknowledges.
  private static func initialNumber(_ segment: TCPSegment) -> UInt32? {
    guard segment.flags.contains(.syn) else { return nil }
    return segment.flags.contains(.ack) ? segment.acknowledgement.rawValue &- 1 : segment.sequence.rawValue
  }

  private static func client(_ segment: TCPSegment, _ direction: FlowDirection) -> FlowDirection {
    segment.flags.contains(.ack) ? direction.opposite : direction
  }

  /// Notes the beginning of a connection, if the segment is a SYN or a SYN-ACK.
  mutating func noteBeginning(
    _ segment: TCPSegment, _ direction: FlowDirection, slot: Int, opened: Int, time: Timestamp
  ) {
    guard time.isKnown, let number = Self.initialNumber(segment) else { return }
    while orderHead < order.count,
      order.count - orderHead >= maximumBeginnings || !isNear(order[orderHead].time, time)
    {
      dropOldest()
    }
    if orderHead > 1_024 && orderHead * 2 > order.count {
      order.removeFirst(orderHead)
      orderHead = 0
    }
    if beginnings[number]?.count == Self.maximumAlike { beginnings[number]?.removeFirst() }
    beginnings[number, default: []].append(
      Beginning(slot: slot, opened: opened, client: Self.client(segment, direction), time: time))
    order.append((number, time))
  }

  private mutating func dropOldest() {
    let number = order[orderHead].number
    orderHead += 1
    if let known = beginnings[number], known.count > 1 {
      beginnings[number] = Array(known.dropFirst())
    } else {
      beginnings[number] = nil
    }
  }

  /// The connections that began with the same initial sequence number at about this time.
  ///
  /// - Parameter flowOf: returns the flow of a connection; `nil` if its slot has a later connection.
  func candidates(
    like segment: TCPSegment, _ direction: FlowDirection, _ flow: Flow, time: Timestamp,
    flowOf: (_ slot: Int, _ opened: Int) -> Flow?
  ) -> [Candidate] {
    guard time.isKnown, let number = Self.initialNumber(segment), let known = beginnings[number] else { return [] }
    let client = Self.client(segment, direction)
    var found: [(candidate: Candidate, ends: Int)] = []
    for beginning in known.reversed() where isNear(beginning.time, time) {
      guard let other = flowOf(beginning.slot, beginning.opened), other != flow else { continue }
      // If the address of one endpoint is translated, the other endpoint is unchanged: candidates with a common
      // endpoint first.
      let ends = [flow.low, flow.high].count { $0 == other.low || $0 == other.high }
      let candidate = Candidate(
        slot: beginning.slot, opened: beginning.opened, isFlipped: beginning.client != client)
      found.append((candidate, ends))
    }
    if found.count > Self.maximumCandidates { found.sort { $0.ends > $1.ends } }
    return found.prefix(Self.maximumCandidates).map(\.candidate)
  }

  // MARK: pending flows

  /// The candidates with which a further flow can be compared; none at the limits of pending flows.
  func open(_ candidates: [Candidate], for segment: TCPSegment) -> [Candidate] {
    guard pending.count < maximumBeginnings else { return [] }
    if let initial = Self.initialNumber(segment), pendingByNumber[initial]?.count ?? 0 >= Self.maximumPending {
      return []
    }
    return candidates.filter { watches[$0.slot]?.pending.count ?? 0 < Self.maximumPending }
  }

  /// Holds a flow that begins like these connections.
  mutating func expect(
    _ flow: Flow, _ segment: TCPSegment, _ direction: FlowDirection, in slot: Int, candidates: [Candidate]
  ) {
    let initial = Self.initialNumber(segment)
    if let initial { pendingByNumber[initial, default: []].append(slot) }
    pending[slot] = Pending(
      flow: flow, initial: initial, client: initial == nil ? nil : Self.client(segment, direction),
      candidates: candidates)
    for candidate in candidates { watches[candidate.slot, default: Watch()].pending.append(slot) }
  }

  /// Holds a segment of a pending flow, and compares it with the recent segments of its candidates.
  ///
  /// - Parameter known: for each candidate, the comparison with what the reassembler has kept.
  mutating func hold(
    _ segment: TCPSegment, _ payload: RawSpan, _ print: SegmentPrint, at position: StreamPosition, serial: Int,
    known: [SegmentPrint.Likeness]
  ) -> Verdict {
    let (slot, direction, time) = (position.slot, position.direction, position.time)
    guard var flow = pending.removeValue(forKey: slot) else { return .own }
    var held = Held(
      segment: segment, direction: direction, bytes: Array(copying: payload), time: time, packet: position.packet,
      serial: serial, print: print)
    var sure: Candidate?
    for (candidate, known) in zip(flow.candidates, known) where sure == nil {
      var mapped = print
      mapped.direction = candidate.map(direction)
      let prints = (watches[candidate.slot]?.prints ?? []).filter { isNear($0.time, time) }
      let likenesses = prints.map { $0.likeness(to: mapped) } + [known]
      if Self.note(likenesses, candidate, &flow, &held) { sure = candidate }
      if !flow.candidates.contains(where: { $0.slot == candidate.slot }) { unwatch(candidate.slot, for: slot) }
    }
    cost += held.cost
    flow.cost += held.cost
    flow.held.append(held)
    pending[slot] = flow
    if let sure { return .view(of: sure) }
    if flow.candidates.isEmpty { return .other }
    return isHopeless(flow, at: time) ? .own : .undecided
  }

  /// Notes the likenesses between a held segment and those of a candidate. Returns whether they prove the flow to be a
  /// view of it.
  private static func note(
    _ likenesses: [SegmentPrint.Likeness], _ candidate: Candidate, _ flow: inout Pending, _ held: inout Held
  ) -> Bool {
    guard let index = flow.candidates.firstIndex(where: { $0.slot == candidate.slot }) else { return false }
    if likenesses.contains(.data) {
      held.isMatched = true
      return true
    }
    if likenesses.contains(.different) {
      flow.candidates.remove(at: index)
      return false
    }
    if likenesses.contains(.beginning) {
      held.isMatched = true
      flow.candidates[index].beginnings += 1
      return flow.candidates[index].beginnings > 1
    }
    if likenesses.contains(.empty) {
      held.isMatched = true
      flow.candidates[index].numbers += held.segment.flags.contains(.ack) ? 2 : 1
    }
    return false
  }

  /// Whether later segments are not expected to decide about a flow.
  private func isHopeless(_ flow: Pending, at time: Timestamp) -> Bool {
    if flow.held.count >= Self.maximumHeld || flow.cost > Self.maximumHeldBytes
      || cost > maximumCost
    {
      return true
    }
    let late = flow.held.filter { !$0.isMatched && !isNear($0.time, time) }
    if late.count(where: \.hasData) >= Self.maximumUnmatched { return true }
    // In the middle of two streams, sequence numbers may be close to each other by chance.
    return flow.initial == nil && late.count >= Self.maximumUnmatched && !flow.held.contains(where: \.isMatched)
  }

  /// Compares a segment of a watched connection with the held segments.
  ///
  /// - Returns: the pending flows that this segment decides.
  mutating func compare(_ print: SegmentPrint, of slot: Int) -> [(slot: Int, verdict: Verdict)] {
    var decided: [(Int, Verdict)] = []
    for place in watches[slot]?.pending ?? [] {
      guard var flow = pending.removeValue(forKey: place) else { continue }
      defer { pending[place] = flow }
      guard let candidate = flow.candidates.first(where: { $0.slot == slot }) else { continue }
      var mapped = print
      mapped.direction = candidate.map(print.direction)
      var isView = false
      for index in flow.held.indices where isNear(flow.held[index].time, print.time) && !isView {
        var held = flow.held[index]
        isView = Self.note([held.print.likeness(to: mapped)], candidate, &flow, &held)
        flow.held[index] = held
      }
      if isView {
        decided.append((place, .view(of: candidate)))
      } else if !flow.candidates.contains(where: { $0.slot == slot }) {
        unwatch(slot, for: place)
        if flow.candidates.isEmpty { decided.append((place, .other)) }
      }
    }
    return decided
  }

  /// The verdict on a pending flow of which no more segments are awaited. If neither the flow nor the candidate has
  /// data, two equal sequence or acknowledgement numbers suffice.
  ///
  /// - Parameter isEmpty: whether the candidate's connection had no data that the flow could have captured.
  func finalVerdict(_ slot: Int, isEmpty: (Candidate) -> Bool) -> Verdict {
    guard let flow = pending[slot], !flow.hasData,
      let candidate = flow.candidates.first(where: { $0.numbers > 1 && ($0.isInMiddle || isEmpty($0)) })
    else { return .own }
    return .view(of: candidate)
  }

  /// Removes a flow from the pending ones.
  mutating func settle(_ slot: Int) -> Pending? {
    guard let flow = pending.removeValue(forKey: slot) else { return nil }
    cost -= flow.cost
    for candidate in flow.candidates { unwatch(candidate.slot, for: slot) }
    if let initial = flow.initial {
      pendingByNumber[initial]?.removeAll { $0 == slot }
      if pendingByNumber[initial]?.isEmpty == true { pendingByNumber[initial] = nil }
    }
    return flow
  }

  /// Makes a flow that turned out to be a connection of its own a candidate: flows that begin like it may be its views.
  mutating func offer(_ slot: Int, opened: Int, as flow: Pending) {
    guard let initial = flow.initial, let client = flow.client else { return }
    for place in pendingByNumber[initial] ?? [] {
      guard watches[slot]?.pending.count ?? 0 < Self.maximumPending, let other = pending[place]?.client,
        pending[place]?.candidates.count ?? 0 < Self.maximumCandidates
      else {
        continue
      }
      pending[place]?.candidates.append(Candidate(slot: slot, opened: opened, isFlipped: other != client))
      watches[slot, default: Watch()].pending.append(place)
    }
  }

  // MARK: watched connections

  func isWatched(_ slot: Int) -> Bool { watches[slot] != nil }

  /// The flows that may be views of a connection.
  func pending(on slot: Int) -> [Int] { watches[slot]?.pending ?? [] }

  /// Notes a segment of a watched connection.
  mutating func note(_ print: SegmentPrint, of slot: Int) {
    guard var watch = watches.removeValue(forKey: slot) else { return }
    if watch.prints.count >= 16 {
      let old = watch.prints.prefix { !isNear($0.time, print.time) }.count
      let excess = watch.prints.count >= Self.maximumPrints ? Self.maximumPrints / 2 : 0
      if max(old, excess) >= 8 { watch.prints.removeFirst(max(old, excess)) }
    }
    watch.prints.append(print)
    watches[slot] = watch
  }

  /// Whether another view captured the same packet.
  func isCopy(_ print: SegmentPrint, of slot: Int) -> Bool {
    guard let watch = watches[slot], !watch.views.isEmpty else { return false }
    for other in watch.prints.reversed() {
      // All earlier segments are older.
      guard isNear(other.time, print.time) else { return false }
      if other.isSame(as: print) { return true }
    }
    return false
  }

  mutating func add(_ view: View, to slot: Int) { watches[slot, default: Watch()].views.append(view) }

  mutating func remove(view: Int, of slot: Int) {
    watches[slot]?.views.removeAll { $0.slot == view }
    forgetIfIdle(slot)
  }

  /// Notes that a connection has ended.
  ///
  /// - Returns: its views, and the flows that are now connections of their own because no candidate is left.
  mutating func end(_ slot: Int) -> (views: [View], own: [Int]) {
    guard let watch = watches.removeValue(forKey: slot) else { return ([], []) }
    idle.append(slot)
    for place in watch.pending { pending[place]?.candidates.removeAll { $0.slot == slot } }
    return (watch.views, watch.pending.filter { pending[$0]?.candidates.isEmpty == true })
  }

  mutating func takeIdle() -> [Int] {
    defer { idle = [] }
    return idle
  }

  private mutating func unwatch(_ slot: Int, for place: Int) {
    watches[slot]?.pending.removeAll { $0 == place }
    forgetIfIdle(slot)
  }

  private mutating func forgetIfIdle(_ slot: Int) {
    guard let watch = watches[slot], watch.pending.isEmpty && watch.views.isEmpty else { return }
    watches[slot] = nil
    idle.append(slot)
  }
}
