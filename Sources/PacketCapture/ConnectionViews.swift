import Bytes

/// Which flows of a capture are one connection, recorded more than once under other addresses.
///
/// `tcpdump -i any` on a host with containers records a packet on each interface that it passes: on some of them before,
/// on others after its addresses were translated. Translation keeps sequence numbers and bytes. So a flow that begins at
/// the numbers of another connection is *pending*: its segments are held until one of them with data is the same as one
/// of the other connection within a millisecond, or two begin alike. Then it is a *view* of that connection. Where
/// neither has data, two numbers of segments that both have are enough at the end. A flow with other data at the same
/// number, with another first number of the server, or with the same data at another time, is a connection of its own.
///
/// A value without streams: it takes segments and says what they prove. `TCPReassembler` acts on it.
struct ConnectionViews {
  /// A connection that a pending flow may be a view of.
  struct Candidate {
    let slot: Int
    /// Tells the connections of a slot apart.
    let opened: Int
    /// The low end of the one flow is the high end of the other.
    let isFlipped: Bool
    /// The flow begins in the middle of its streams.
    let isInMiddle: Bool
    /// The sequence and acknowledgement numbers of segments without data that both have.
    fileprivate var numbers = 0
    /// Segments whose data begin alike.
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
    /// Counts the segments of all flows.
    let serial: Int
    fileprivate let print: SegmentPrint
    fileprivate var isMatched = false

    fileprivate var hasData: Bool { segment.payloadLength > 0 }
    fileprivate var cost: Int { bytes.count + DirectionalStream.pieceOverhead }
  }

  struct Pending {
    let flow: Flow
    /// The client's initial sequence number and its direction, if its SYN was captured, or the answer to it.
    fileprivate let initial: UInt32?
    fileprivate let client: FlowDirection?
    fileprivate(set) var candidates: [Candidate]
    fileprivate(set) var held: [Held] = []
    fileprivate var cost = 0

    var hasData: Bool { held.contains(where: \.hasData) }

    /// A SYN that is not the one that it began with.
    func isBegunAnew(by segment: TCPSegment) -> Bool {
      guard let number = ConnectionViews.initialNumber(segment) else { return false }
      return initial != nil && number != initial
    }
  }

  /// A flow that turned out to be a view.
  struct View {
    let slot: Int
    let isFlipped: Bool
  }

  /// What is kept of a connection while flows are compared with it, and as long as it has views.
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

  /// Where a connection began.
  private struct Beginning {
    var slot: Int
    var opened: Int
    var client: FlowDirection
    var time: Timestamp
  }

  static let maximumCandidates = 16
  /// Flows that are pending because of one connection, or of one initial number: so settling one of them settles few.
  private static let maximumPending = 16
  /// Connections with one initial number of the client that are kept.
  private static let maximumAlike = 64
  /// What a pending flow holds: segments, and bytes.
  private static let maximumHeld = 64
  private static let maximumHeldBytes = 1 << 18
  /// Segments with data that no candidate has: later ones are not expected to be there.
  private static let maximumUnmatched = 4
  /// Segments of a connection that others are compared with.
  private static let maximumPrints = 64

  private let window: Int64
  private let maximumBeginnings: Int
  private let maximumCost: Int
  /// By the client's initial sequence number; and these in the order of their times.
  private var beginnings: [UInt32: [Beginning]] = [:]
  private var order: [(number: UInt32, time: Timestamp)] = []
  private var orderHead = 0
  private(set) var pending: [Int: Pending] = [:]
  /// Pending flows by the client's initial sequence number.
  private var pendingByNumber: [UInt32: [Int]] = [:]
  private var watches: [Int: Watch] = [:]
  /// Of all held segments.
  private var cost = 0
  /// Connections with which nothing is compared any more.
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

  /// The client's initial sequence number, which a SYN has and a SYN-ACK acknowledges.
  private static func initialNumber(_ segment: TCPSegment) -> UInt32? {
    guard segment.flags.contains(.syn) else { return nil }
    return segment.flags.contains(.ack) ? segment.acknowledgement.rawValue &- 1 : segment.sequence.rawValue
  }

  private static func client(_ segment: TCPSegment, _ direction: FlowDirection) -> FlowDirection {
    segment.flags.contains(.ack) ? direction.opposite : direction
  }

  /// Notes the beginning of a connection, if the segment is a SYN or the answer to one.
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

  /// The connections that began with the same number at this time.
  ///
  /// - Parameter flowOf: the flow of a connection that is the latest of its slot.
  func candidates(
    like segment: TCPSegment, _ direction: FlowDirection, _ flow: Flow, time: Timestamp,
    flowOf: (_ slot: Int, _ opened: Int) -> Flow?
  ) -> [Candidate] {
    guard time.isKnown, let number = Self.initialNumber(segment), let known = beginnings[number] else { return [] }
    let client = Self.client(segment, direction)
    var found: [(candidate: Candidate, ends: Int)] = []
    for beginning in known.reversed() where isNear(beginning.time, time) {
      guard let other = flowOf(beginning.slot, beginning.opened), other != flow else { continue }
      // Where the address of one end is translated, the other end stays: those are compared first.
      let ends = [flow.low, flow.high].count { $0 == other.low || $0 == other.high }
      let candidate = Candidate(
        slot: beginning.slot, opened: beginning.opened, isFlipped: beginning.client != client)
      found.append((candidate, ends))
    }
    if found.count > Self.maximumCandidates { found.sort { $0.ends > $1.ends } }
    return found.prefix(Self.maximumCandidates).map(\.candidate)
  }

  // MARK: pending flows

  /// Those of the candidates that a further flow can be compared with; none where too many are already.
  func open(_ candidates: [Candidate], for segment: TCPSegment) -> [Candidate] {
    guard pending.count < maximumBeginnings else { return [] }
    if let initial = Self.initialNumber(segment), pendingByNumber[initial]?.count ?? 0 >= Self.maximumPending {
      return []
    }
    return candidates.filter { watches[$0.slot]?.pending.count ?? 0 < Self.maximumPending }
  }

  /// A flow that begins like these connections is held from now on.
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

  /// Holds a segment of a pending flow, and compares it with what its candidates have had.
  ///
  /// - Parameter known: what the reassembler remembers of each candidate says.
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

  /// Notes how a segment is like those of a candidate; whether that proves the flow to be a view of it.
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

  /// Later segments are not expected to show what a flow is.
  private func isHopeless(_ flow: Pending, at time: Timestamp) -> Bool {
    if flow.held.count >= Self.maximumHeld || flow.cost > Self.maximumHeldBytes
      || cost > maximumCost
    {
      return true
    }
    let late = flow.held.filter { !$0.isMatched && !isNear($0.time, time) }
    if late.count(where: \.hasData) >= Self.maximumUnmatched { return true }
    // In the middle of two streams the numbers may be near each other by chance.
    return flow.initial == nil && late.count >= Self.maximumUnmatched && !flow.held.contains(where: \.isMatched)
  }

  /// Compares a segment of a watched connection with what is held.
  ///
  /// - Returns: the pending flows that are decided now.
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

  /// What a pending flow is when nothing more of it comes: where neither has data, two numbers of segments that both have
  /// are enough.
  ///
  /// - Parameter isEmpty: the candidate's connection had no data, as far as the flow may have been captured.
  func finalVerdict(_ slot: Int, isEmpty: (Candidate) -> Bool) -> Verdict {
    guard let flow = pending[slot], !flow.hasData,
      let candidate = flow.candidates.first(where: { $0.numbers > 1 && ($0.isInMiddle || isEmpty($0)) })
    else { return .own }
    return .view(of: candidate)
  }

  /// The flow is not pending any more.
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

  /// A flow that was pending is a connection of its own: others that begin like it may be views of it.
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

  /// Flows that may be views of a connection.
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

  /// Another view had the same packet.
  func isCopy(_ print: SegmentPrint, of slot: Int) -> Bool {
    guard let watch = watches[slot], !watch.views.isEmpty else { return false }
    for other in watch.prints.reversed() {
      // Those before are older.
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

  /// The connection has ended.
  ///
  /// - Returns: its views, and the flows that are decided because they may be views of no other connection.
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
