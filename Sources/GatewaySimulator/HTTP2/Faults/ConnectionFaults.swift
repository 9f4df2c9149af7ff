import Bytes
import HTTP2
import HeapModule
import Measurement
import ProviderAPI

/// The faults of one connection, and the answers that wait because of them.
///
/// There is none while no fault is set: a connection then costs nothing for them.
final class ConnectionFaults {
  /// An action of the transport.
  enum Effect: Equatable {
    /// Close when all streams are answered.
    case drain
    case close(isReset: Bool)
    case slow(bytesPerSecond: Int)
  }

  /// An answer, and how it is disturbed.
  struct Answer {
    enum Disposal: Equatable {
      case send
      case reset(ErrorCode)
      case close(HTTP2Fault.CutAnswer)
      case nothing
    }

    var slot: Int
    var stream: UInt32
    var status: Int
    var content: [UInt8]?
    var isHTML = false
    var disposal = Disposal.send
    /// Frames before it, in it, or in its place.
    var wrong: [WrongFrame] = []
    var disorder: HTTP2Fault.Disorder?
  }

  private struct Held: Comparable {
    var due: Int64
    var sequence: Int
    var answer: Answer

    static func < (one: Held, other: Held) -> Bool { (one.due, one.sequence) < (other.due, other.sequence) }
    static func == (one: Held, other: Held) -> Bool { (one.due, one.sequence) == (other.due, other.sequence) }
  }

  private struct Entry {
    let active: ActiveFault
    /// Notifications until the next hit of a probability.
    var untilHit = 0
    /// The next end of a period.
    var due: Int64 = 0
    /// The connection was hit since it last received something.
    var isIdleHit = false

    var share: HTTP2Fault.Occasion.Share { active.fault.occasion.share }
    /// Whether it hits the connection, and no notification.
    var isOfTime: Bool {
      let (kind, occasion) = (active.fault.kind, active.fault.occasion)
      switch occasion.share {
      case .idle: return true
      case .period:
        return kind.concernsConnection && occasion.topic == nil && occasion.token == nil && occasion.prefix.isEmpty
          && occasion.index == nil
      case .all, .every, .probability: return false
      }
    }
  }

  private var entries: [Entry] = []
  private let connection: UInt64
  private var generator: SplitMix64
  private var held = Heap<Held>()
  private var sequence = 0
  /// Answers that wait for each other, and until when.
  private var group: [Answer] = []
  private var groupDue: Int64 = 0

  /// ns of the loop's clock; set once for all bytes of a read.
  private(set) var tick: Int64
  private var lastRead: Int64
  /// The highest stream whose request was complete.
  var highestAnswered: UInt32 = 0
  /// The GOAWAY that follows one with 2³¹−1.
  var notice: (due: Int64, goAway: HTTP2Fault.GoAway)?
  /// The bytes of the output that are sent yet; `nil`: all. Nothing is processed any more once it is set.
  var outputEnd: Int?
  var effects: [Effect] = []

  /// - Parameter tick: ns of the loop's clock.
  init(connection: UInt64, generator: SplitMix64, tick: Int64) {
    (self.connection, self.generator, self.tick, lastRead) = (connection, generator, tick, tick)
  }

  /// A change of the faults; one that is there already goes on.
  func adopt(_ faults: [ActiveFault]) {
    let earlier = entries
    entries = faults.filter { $0.fault.occasion.connection?.contains(Int(clamping: connection)) != false }.map {
      active in
      if let entry = earlier.first(where: { $0.active === active }) { return entry }
      var entry = Entry(active: active)
      switch active.fault.occasion.share {
      case .probability(let probability): entry.untilHit = generator.waiting(for: probability)
      case .period(let period): entry.due = tick + period.nanoseconds
      case .all, .every, .idle: break
      }
      return entry
    }
  }

  /// Whether neither faults nor waiting answers are there.
  var isIdle: Bool { entries.isEmpty && held.isEmpty && group.isEmpty && notice == nil && outputEnd == nil }

  /// Bytes have come.
  func noteRead(at tick: Int64) {
    (self.tick, lastRead) = (tick, tick)
    for place in entries.indices { entries[place].isIdleHit = false }
  }

  func note(_ tick: Int64) { self.tick = max(tick, self.tick) }

  // MARK: hits

  /// The faults that hit a notification, in their order.
  ///
  /// - Parameter isEnding: GOAWAY was sent.
  func hits(_ request: ServedRequest, index: Int, isEnding: Bool) -> [HTTP2Fault.Kind] {
    var hits: [HTTP2Fault.Kind] = []
    var isAnswerDecided = false
    for place in entries.indices {
      let entry = entries[place]
      let kind = entry.active.fault.kind
      if entry.isOfTime || isEnding && kind.isGoAway || kind.decidesAnswer && isAnswerDecided { continue }
      guard meets(entry.active.fault.occasion, request, index), entry.active.isInForce(at: tick), isShared(place)
      else { continue }
      if case .throttle(let rate) = kind, !entry.active.exceeds(rate, request.token, at: tick) { continue }
      guard entry.active.takesOne() else { continue }
      if kind.decidesAnswer { isAnswerDecided = true }
      hits.append(kind)
    }
    return hits
  }

  private func meets(_ occasion: HTTP2Fault.Occasion, _ request: ServedRequest, _ index: Int) -> Bool {
    if let range = occasion.index, !range.contains(index) { return false }
    if let topic = occasion.topic, !request.topic.elementsEqual(Array(topic.utf8).rawBytes) { return false }
    if let token = occasion.token, !request.token.elementsEqual(token.rawBytes) { return false }
    return occasion.prefix.isEmpty || request.token.begins(with: occasion.prefix.rawBytes)
  }

  /// Whether a notification that meets the conditions is one of those that are hit.
  private func isShared(_ place: Int) -> Bool {
    switch entries[place].share {
    case .all: return true
    case .every(let interval): return entries[place].active.isHit(every: interval)
    case .probability(let probability):
      entries[place].untilHit -= 1
      guard entries[place].untilHit < 0 else { return false }
      entries[place].untilHit = generator.waiting(for: probability)
      return true
    case .period: return isPeriodOver(place)
    case .idle: return false
    }
  }

  private func isPeriodOver(_ place: Int) -> Bool {
    guard case .period(let period) = entries[place].share, tick >= entries[place].due else { return false }
    // Missed periods are not made up for.
    let length = period.nanoseconds
    entries[place].due += ((tick - entries[place].due) / length + 1) * length
    return true
  }

  /// The faults that hit the connection now, without a notification.
  func hitsOfTime(isEnding: Bool) -> [HTTP2Fault.Kind] {
    guard outputEnd == nil else { return [] }
    var hits: [HTTP2Fault.Kind] = []
    for place in entries.indices where entries[place].isOfTime {
      let entry = entries[place]
      guard entry.active.isInForce(at: tick), !(isEnding && entry.active.fault.kind.isGoAway) else { continue }
      if case .idle(let time) = entry.share {
        guard !entry.isIdleHit, tick - lastRead >= time.nanoseconds else { continue }
        entries[place].isIdleHit = true
      } else {
        guard isPeriodOver(place) else { continue }
      }
      if entry.active.takesOne() { hits.append(entry.active.fault.kind) }
    }
    return hits
  }

  // MARK: waiting answers

  func draw(_ delay: AnswerDelay) -> Int64 { delay.draw(&generator) }

  func hold(_ answer: Answer, for delay: Int64) {
    sequence += 1
    held.insert(Held(due: tick + delay, sequence: sequence, answer: answer))
  }

  /// Lets an answer wait for others.
  func gather(_ answer: Answer, _ disorder: HTTP2Fault.Disorder) {
    if group.isEmpty { groupDue = tick + disorder.within.nanoseconds }
    group.append(answer)
    if group.count >= disorder.depth { groupDue = tick }
  }

  /// An answer whose time has come.
  func takeDue() -> Answer? {
    guard let first = held.min, first.due <= tick else { return nil }
    return held.popMin()?.answer
  }

  /// The answers that have waited for each other, in an order that is drawn.
  func takeGroup() -> [Answer] {
    guard !group.isEmpty, groupDue <= tick else { return [] }
    defer { group = [] }
    return group.shuffled(using: &generator)
  }

  /// When something is to be done without a read, in ns of the loop's clock.
  ///
  /// - Parameter isEnding: GOAWAY was sent.
  func nextDue(isEnding: Bool) -> Int64? {
    guard outputEnd == nil else { return nil }
    var next = held.min?.due
    func add(_ due: Int64) { next = min(next ?? due, due) }
    if !group.isEmpty { add(groupDue) }
    if let notice { add(notice.due) }
    // The same conditions as in `hitsOfTime`: what is due there is done there, and has another time then.
    for entry in entries
    where entry.isOfTime && entry.active.left != 0 && !(isEnding && entry.active.fault.kind.isGoAway) {
      var due = entry.due
      if case .idle(let time) = entry.share {
        guard !entry.isIdleHit else { continue }
        due = lastRead + time.nanoseconds
      }
      due = max(due, entry.active.firstTick)
      if due < entry.active.endTick { add(due) }
    }
    return next
  }
}

extension HTTP2Fault.Kind {
  fileprivate var isGoAway: Bool { if case .goAway = self { true } else { false } }

  /// Whether it decides what a notification gets; of several the first does.
  var decidesAnswer: Bool {
    switch self {
    case .silence, .refuse, .reset, .throttle, .close, .answer: true
    case .frame(let wrong): wrong.replacesAnswer
    case .delay, .disorder, .goAway, .streamLimit, .slowReading: false
    }
  }
}
