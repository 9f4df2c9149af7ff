import BinaryProtocol
import Bytes
import PacketCapture
import PushModel

/// The counts of an open connection.
///
/// A value in an array, like `ClientStream`, for locality.
struct ConnectionTally {
  let number: Int
  let opened: Timestamp
  /// Notifications by command: 0, 1, and 2.
  var commands = InlineArray<3, Int>(repeating: 0)
  var firstError: ErrorResponseRecord?
  /// A response said that nothing after `named` was read.
  var isTerminated = false
  var named = -1
  /// Losses of this connection belong to this error response (`TrackedNotifications.beginLoss`).
  var loss = -1
  /// The index in the inspection's `losses` of the response whose losses these are.
  var lossRow: Int?
  var lastPacket = 0
  /// Error responses with status 8 that name a token.
  var invalidTokens = 0
  /// One of its records is selected.
  var isShown = true
  /// An error response came.
  var isAnswered = false
  /// Not all that the gateway sent is in the recording.
  var lacksAnswers = false
  /// The place of the connection's latest notification in the history; -1: none.
  private(set) var latest = -1
  /// Notifications so far, including unselected ones.
  private(set) var written = 0

  init(number: Int, opened: Timestamp) {
    self.number = number
    self.opened = opened
  }

  /// - Parameter known: the digest of token and payload, if it is known.
  @inline(__always)
  mutating func note(
    _ fields: PushFields, _ frame: RawSpan, _ place: RecordPlace, index: Int, digest known: UInt64? = nil,
    isSelected: Bool, _ shared: inout SharedTally
  ) {
    if !isSelected { return note(other: fields, frame, place, index: index, &shared) }
    let command = fields.command.rawValue
    commands[command > 1 ? 2 : Int(command)] += 1
    let token = frame.extracting(fields.token.range)
    let payload = frame.extracting(fields.payload.range)
    shared.note(fields, token, payload, place)
    let digest = known ?? SentNotification.digest(token: token, payload: payload)
    let sent = SentNotification(fields, digest: digest, at: place, index: index, isSelected: true)
    shared.judge(fields, frame, sent, place)
    note(sent, token, payload, place, &shared)
  }

  /// Notes a notification that is not selected, and therefore not counted.
  @inline(never)
  private mutating func note(
    other fields: PushFields, _ frame: RawSpan, _ place: RecordPlace, index: Int,
    _ shared: inout SharedTally
  ) {
    let token = frame.extracting(fields.token.range)
    let payload = frame.extracting(fields.payload.range)
    let digest = SentNotification.digest(token: token, payload: payload)
    let sent = SentNotification(fields, digest: digest, at: place, index: index, isSelected: false)
    shared.judgeOther(fields, frame, sent, place)
    note(sent, token, payload, place, &shared)
  }

  /// A frame with bad items: its fields are unreliable and not counted.
  mutating func note(
    malformed fields: PushFields, _ frame: RawSpan, _ place: RecordPlace, index: Int, isSelected: Bool,
    _ shared: inout SharedTally
  ) {
    if isSelected { commands[2] += 1 }
    let token = frame.extracting(fields.token.range)
    let payload = frame.extracting(fields.payload.range)
    if isSelected { shared.note(time: place.time) }
    let sent = SentNotification(
      malformed: fields, token: token, payload: payload, at: place, index: index, isSelected: isSelected)
    note(sent, token, payload, place, &shared)
  }

  @inline(__always)
  private mutating func note(
    _ sent: SentNotification, _ token: RawSpan, _ payload: RawSpan, _ place: RecordPlace, _ shared: inout SharedTally
  ) {
    shared.history.append(
      sent, token: token, payload: payload, packet: place.packet, loss: isTerminated ? loss : -1, latest: &latest)
    if shared.history.waiting == SentHistory.lag { shared.trackNext() }
    lastPacket = place.packet
    written = sent.index + 1
  }
}

/// The open connections' tallies by number. Numbers rise, so an array that forgets its ended beginning serves.
struct Tallies<Tally> {
  private var first = 1
  private var tallies: [Tally] = []
  private var hasEnded: [Bool] = []
  private var ended = 0
  /// The entry of a connection that has ended.
  private let blank: Tally

  init(blank: Tally) { self.blank = blank }

  mutating func add(_ tally: Tally, number: Int) {
    if ended == tallies.count {
      (first, ended) = (number, 0)
      tallies.removeAll(keepingCapacity: true)
      hasEnded.removeAll(keepingCapacity: true)
    }
    // When records are read back, some may be missing and others late: skipped numbers count as ended.
    if number < first {
      tallies.insert(contentsOf: repeatElement(blank, count: first - number), at: 0)
      hasEnded.insert(contentsOf: repeatElement(true, count: first - number), at: 0)
      ended += first - number
      first = number
    }
    while tallies.count <= number - first {
      tallies.append(blank)
      hasEnded.append(true)
      ended += 1
    }
    tallies[number - first] = tally
    hasEnded[number - first] = false
    ended -= 1
  }

  /// The index of the connection's tally, valid until the next `add` or `remove`; `nil` if the connection has ended.
  @inline(__always)
  func index(of number: Int) -> Int? {
    let index = number - first
    return index >= 0 && index < tallies.count && !hasEnded[index] ? index : nil
  }

  /// Begins to fetch a connection's tally, which is wanted soon.
  @inline(__always)
  func prefetch(_ number: Int) {
    let index = number - first
    tallies.prefetch(index..<index + 1)
  }

  /// Calls `body` with the tally of every open connection.
  func forEachOpen(_ body: (Tally) -> Void) {
    for index in tallies.indices where !hasEnded[index] { body(tallies[index]) }
  }

  subscript(index: Int) -> Tally {
    @inline(__always) get { tallies[index] }
    @inline(__always) _modify { yield &tallies[index] }
  }

  mutating func remove(_ number: Int) -> Tally? {
    guard let index = index(of: number) else { return nil }
    let tally = tallies[index]
    tallies[index] = blank
    hasEnded[index] = true
    ended += 1
    if ended >= 64 && ended * 2 >= tallies.count {
      let prefix = hasEnded.prefix { $0 }.count
      tallies.removeFirst(prefix)
      hasEnded.removeFirst(prefix)
      first += prefix
      ended -= prefix
    }
    return tally
  }
}
