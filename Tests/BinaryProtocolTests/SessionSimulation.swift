import BinaryProtocol
import PushModel
import TestSupport

/// A provider that sends a few dozen notifications to a gateway over connections that may fail, until each has a fate.
///
/// The provider writes batches, reads answers whenever it gets round to it, opens a new connection when one is over, and
/// sends again what was discarded, in order. What the gateway did is known beside it, so that both books can be compared.
struct SessionSimulation {
  /// What is wrong with a notification, however often it is sent.
  enum Flaw: CaseIterable {
    case none, refused, shortToken, longPayload
    /// An item overruns its frame, behind or before the identifier; or it is no frame at all.
    case overrunBehindIdentifier, overrunBeforeIdentifier, noFrame
  }

  enum Fate { case accepted, rejected, unknown }
  enum Numbering: CaseIterable { case counter, restarted, someWithout, never }

  /// What was met, so that a test can tell that simulations meet everything.
  struct Tally {
    var connections = 0, rejections = 0, shutdowns = 0, malformed = 0, losses = 0, markers = 0, discarded = 0
    var unresolved = 0, unknown = 0, duplicates = 0, clean = 0
  }

  let seed: UInt64
  private(set) var problems: [String] = []
  private(set) var tally = Tally()

  private var random: SeededGenerator
  /// Nothing is lost on the way, and nothing is sent that cannot be named: then every fate must be known.
  private let isClean: Bool
  private let resendsUnknown: Bool
  private let endsWithMarker: Bool
  private let markerHasIdentifier: Bool
  private let numbering: Numbering
  private let flaws: [Flaw]
  private var nextIdentifier: UInt32 = 1

  private var queue: [Int]
  private var attempts: [Int]
  private var fates: [Fate?]
  /// How often the gateway accepted and refused each notification.
  private var accepted: [Int]
  private var refused: [Int]
  private var acceptedInOrder: [Int] = []

  init(seed: UInt64) {
    self.seed = seed
    var random = SeededGenerator(seed: seed)
    let count = random.number(1...random.pick([3, 30, 90]))
    let isClean = random.happens(oneIn: 3)
    let flawed = random.pick([4, 15, 60])
    let possible: [Flaw] =
      isClean ? [.refused, .shortToken, .longPayload, .overrunBehindIdentifier] : Flaw.allCases.filter { $0 != .none }
    flaws = (0..<count).map { _ in random.happens(oneIn: flawed) ? random.pick(possible) : .none }
    self.isClean = isClean
    resendsUnknown = random.happens(oneIn: 2)
    endsWithMarker = isClean || random.happens(oneIn: 2)
    markerHasIdentifier = random.happens(oneIn: 2)
    numbering = random.pick(isClean ? [.counter, .restarted] : Numbering.allCases)
    queue = Array(0..<count)
    attempts = .init(repeating: 0, count: count)
    fates = .init(repeating: nil, count: count)
    accepted = .init(repeating: 0, count: count)
    refused = .init(repeating: 0, count: count)
    self.random = random
  }

  mutating func run() {
    while !queue.isEmpty && problems.isEmpty {
      tally.connections += 1
      guard tally.connections < 1_000 else { return problems.append("no end of connections") }
      connect()
    }
    if problems.isEmpty { checkFates() }
    if isClean { tally.clean = 1 }
  }

  // MARK: one connection

  private mutating func connect() {
    var connection = SimulatedConnection(fault: fault(), gateway: gateway())
    if numbering == .restarted { nextIdentifier = 1 }
    /// The notification of each written frame; `nil` is the marker.
    var sent: [Int?] = []
    let limit = random.happens(oneIn: 3) ? random.number(1...20) : .max
    let writesEvery = random.pick([2, 6, 20])
    var hasFinished = false
    let flaws = flaws
    let judge: (String) -> ErrorResponse.Status? = { text in
      number(in: text).map { flaws[$0] == .refused } == true ? .invalidToken : nil
    }
    var steps = 0
    while !connection.isOver {
      steps += 1
      guard steps < 100_000 else { return problems.append("a connection without end") }
      if !hasFinished && random.happens(oneIn: writesEvery) {
        for _ in 0..<random.number(1...8) where !queue.isEmpty && sent.count < limit {
          let next = queue.removeFirst()
          attempts[next] += 1
          sent.append(next)
          write(next, to: &connection)
        }
        if queue.isEmpty || sent.count >= limit {
          hasFinished = true
          if endsWithMarker {
            tally.markers += 1
            sent.append(nil)
            writeMarker(to: &connection)
          } else {
            connection.finishWriting()
          }
        }
      }
      connection.step(&random, judge: judge)
    }
    connection.settle(judge: judge)
    note(connection, sent)
    checkBooks(connection, sent)
    takeFates(from: connection, sent)
  }

  private mutating func fault() -> SimulatedConnection.Fault {
    guard !isClean, random.happens(oneIn: 2) else { return .none }
    switch random.number(0...2) {
    case 0: return .upstream(after: random.number(0...random.pick([50, 3_000])))
    case 1: return .downstream(after: random.number(0...5), isReset: random.happens(oneIn: 2))
    default: return .silentClose(after: random.number(0...random.pick([50, 3_000])))
    }
  }

  private mutating func gateway() -> SimulatedConnection.Gateway {
    var gateway = SimulatedConnection.Gateway()
    // A shutdown before anything was accepted names nothing, and a clean simulation must know all.
    if random.happens(oneIn: 4) { gateway.shutdownAfter = random.number((isClean ? 1 : 0)...20) }
    if !isClean && random.happens(oneIn: 6) { gateway.shutdownChance = random.number(2...60) }
    gateway.lingers = isClean || random.happens(oneIn: 2)
    gateway.answersMalformed = isClean || !random.happens(oneIn: 4)
    return gateway
  }

  private mutating func identifier() -> UInt32? {
    if numbering == .never || numbering == .someWithout && random.happens(oneIn: 4) { return nil }
    defer { nextIdentifier += 1 }
    return nextIdentifier
  }

  private mutating func write(_ index: Int, to connection: inout SimulatedConnection) {
    let identifier = identifier()
    let flaw = flaws[index]
    let token = flaw == .shortToken ? Array(Frame.token.dropLast()) : Frame.token
    let payload = flaw == .longPayload ? Frame.payload(2_049) : Array("{\"aps\":{\"alert\":\"\(index)\"}}".utf8)
    let named = identifier.map { id in Frame.item(3, written { $0.write(bigEndian: id) }) } ?? []
    let frame: [UInt8]
    switch flaw {
    case .overrunBehindIdentifier:
      return connection.write(
        malformed: Frame.around(named + Frame.item(1, length: 33, token)), identifier: identifier)
    case .overrunBeforeIdentifier:
      return connection.write(malformed: Frame.around(Frame.item(1, length: 99, token) + named), identifier: nil)
    case .noFrame: return connection.write(unreadable: [7])
    default:
      if let identifier {
        frame =
          random.happens(oneIn: 3)
          ? Frame.enhanced(identifier, token: token, payload: payload)
          : Frame.framed(identifier, token: token, payload: payload)
      } else {
        frame =
          random.happens(oneIn: 3)
          ? Frame.framed(nil, token: token, payload: payload) : Frame.simple(token: token, payload: payload)
      }
    }
    connection.write(frame, identifier: identifier, isKnownBad: false)
  }

  private mutating func writeMarker(to connection: inout SimulatedConnection) {
    let identifier = markerHasIdentifier ? nextIdentifier : nil
    nextIdentifier += 1
    connection.write(Frame.framed(identifier, token: [], payload: []), identifier: identifier, isKnownBad: true)
  }

  // MARK: what follows for the notifications

  private mutating func takeFates(from connection: SimulatedConnection, _ sent: [Int?]) {
    var again: [Int] = []
    for (place, index) in sent.enumerated() {
      guard let index else { continue }
      let named = connection.verdict?.notification
      switch named {
      case nil where resendsUnknown && attempts[index] < 3: again.append(index)
      case nil: take(.unknown, index)
      case let named? where place > named: again.append(index)
      case let named? where place == named && connection.status != .shutdown: take(.rejected, index)
      default: take(.accepted, index)
      }
    }
    queue = again + queue
  }

  private mutating func take(_ fate: Fate, _ index: Int) {
    if let before = fates[index] { problems.append("notification \(index) is \(before) and \(fate)") }
    fates[index] = fate
  }

  /// Enters what the gateway did with each into its book.
  private mutating func note(_ connection: SimulatedConnection, _ sent: [Int?]) {
    let talk = connection.talk
    for place in 0..<min(talk.accepted, sent.count) {
      guard let index = sent[place] else {
        problems.append("the marker was accepted")
        continue
      }
      accepted[index] += 1
      acceptedInOrder.append(index)
    }
    let ending = talk.ending
    if talk.rejected == 1, let index = ending?.notification.flatMap({ $0 < sent.count ? sent[$0] : nil }) {
      refused[index] += 1
    }
    tally.rejections += talk.rejected
    tally.discarded += talk.discarded
    if ending?.cause == .shutdown { tally.shutdowns += 1 }
    if case .malformed = ending?.cause { tally.malformed += 1 }
    if connection.hasLost { tally.losses += 1 }
    if connection.status != nil && connection.verdict?.notification == nil { tally.unresolved += 1 }
  }

  // MARK: the books

  private mutating func expect(_ holds: Bool, _ text: @autoclosure () -> String) {
    if !holds { problems.append("connection \(tally.connections): " + text()) }
  }

  private mutating func checkBooks(_ connection: SimulatedConnection, _ sent: [Int?]) {
    let (talk, fates) = (connection.talk, connection.session.fates)
    let books = "gateway \(talk.accepted)+\(talk.rejected)+\(talk.discarded), provider \(fates)"
    expect(
      talk.received == talk.accepted + talk.rejected + talk.discarded, "the gateway's counts do not add up: \(books)")
    expect(talk.bytes + connection.rest.count == connection.delivered, "bytes are missing")
    expect(fates.accepted + fates.rejected + fates.discarded + fates.unknown == sent.count, "provider's sum: \(books)")
    expect(talk.accepted <= connection.gateway.shutdownAfter, "accepted behind the shutdown: \(books)")
    expect(talk.received <= sent.count, "more arrived than was written: \(books)")
    // The gateway saw the notifications that were written, in this order; what breaks a rule is not asked about.
    let accepted = sent.prefix(talk.accepted).map { $0.map(String.init) ?? "marker" }
    expect(
      connection.asked.prefix(talk.accepted).map { number(in: $0).map(String.init) ?? $0 } == accepted,
      "others were accepted than written: \(books)")

    guard connection.verdict?.notification != nil else {
      // Nothing is claimed that is not known.
      expect(fates.unknown == sent.count, "fates without a named notification: \(books)")
      return
    }
    expect(talk.ending?.notification == connection.verdict?.notification, "another one is named: \(books)")
    expect(fates.accepted == talk.accepted, "accepted: \(books)")
    expect(fates.rejected == talk.rejected, "rejected: \(books)")
    expect(fates.unknown == 0, "unknown behind an answer: \(books)")
    expect(fates.discarded >= talk.discarded, "discarded: \(books)")
    // Without a loss the gateway counted all of them, up to what is no frame: behind that none can be found.
    guard !connection.hasLost else { return }
    let behind = sent.dropFirst(fates.accepted + fates.rejected)
    let countable = behind.prefix { $0.map { flaws[$0] != .noFrame } ?? true }.count
    expect(talk.discarded == countable, "discarded without a loss: \(books), \(countable) frames")
  }

  private mutating func checkFates() {
    for index in fates.indices {
      let (accepted, refused) = (accepted[index], refused[index])
      let counts = "notification \(index) (\(flaws[index])): accepted \(accepted) times, refused \(refused) times"
      switch fates[index] {
      case nil: problems.append(counts + ", without a fate")
      case .accepted: if accepted == 0 { problems.append(counts + ", said to be accepted") }
      case .rejected: if refused == 0 { problems.append(counts + ", said to be rejected") }
      case .unknown:
        tally.unknown += 1
        if isClean { problems.append(counts + ", unknown without a loss") }
      }
      if accepted > 1 { tally.duplicates += 1 }
      // Only sending again what may have arrived makes duplicates.
      if (isClean || !resendsUnknown) && accepted + refused > 1 { problems.append(counts + ", a duplicate") }
      if isClean && (flaws[index] == .none ? accepted : refused) != 1 { problems.append(counts + ", lost") }
      if flaws[index] != .none && accepted > 0 { problems.append(counts) }
    }
    if isClean && acceptedInOrder != acceptedInOrder.sorted() { problems.append("accepted out of order") }
  }
}

/// The number that a notification's payload carries.
private func number(in text: String) -> Int? { Int(text.filter { ("0"..."9").contains($0) }) }
