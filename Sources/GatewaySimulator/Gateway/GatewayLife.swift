import BinaryProtocol
import Bytes
import Measurement
import NIOCore

/// The life of one provider's connection on the gateway's side: when it ends, why, and how its answer is sent.
///
/// A value without I/O and clock: calls say what has happened, and return what is to be done, in order. Delays are
/// actions, whose end is another call. What is read, and how fast, is not decided here.
struct GatewayLife {
  typealias End = ConnectionEnd

  enum Phase: Equatable {
    case handshake
    case open
    /// The gateway has ended it, but its answer is not out yet.
    case answering
    /// The gateway's direction is closed; received frames are counted.
    case lingering(until: NIODeadline)
    case closed
  }

  enum Action: Equatable {
    /// Calls `answerIsDue` after this time.
    case answerLater(Duration)
    /// Writes the next bytes of the answer, and calls `wrote` when the system has taken them.
    case write([UInt8])
    /// Calls `pieceIsDue` after this time.
    case writeLater(Duration)
    /// Closes the gateway's direction.
    case closeOutput
    /// Closes with a RST, which can destroy what the peer's kernel has not delivered.
    case reset
    case close
    case report(Report)
  }

  /// An event for the counts and the log.
  enum Report: Equatable {
    case refused(ErrorResponse.Status)
    case malformed
    case handshakeFailed(reason: String)
    /// The connection ends without an error response.
    case noResponse(GatewaySession.Ending)
    case responded(GatewaySession.Ending, ErrorResponse)
    /// The connection closed when only these bytes of the error response were sent.
    case respondedInPart(GatewaySession.Ending, ErrorResponse, written: Int)
  }

  /// A failure of the transport that ended the connection.
  enum Failure {
    case handshake(reason: String)
    case tls
    case network
  }

  /// Due in a silence, and sent at its end.
  private enum Held { case answer, piece }

  /// An error response that is not completely written.
  private struct Answer {
    let ending: GatewaySession.Ending
    /// The response as sent.
    let response: ErrorResponse
    /// Bytes that are not handed over yet, and the lengths of the next pieces.
    var rest: ArraySlice<UInt8>
    var pieces: ArraySlice<Int>
    /// Bytes that the system has taken.
    var written = 0
  }

  private var rules: Behavior.Response
  private let linger: TimeAmount
  private var generator: SplitMix64
  private(set) var phase = Phase.handshake
  /// `nil`: it has not ended, or nothing is known of the reason yet.
  private(set) var end: End?
  /// The error of TLS, the system or the feedback list that ended the connection.
  private(set) var problem: String?
  private var ending: GatewaySession.Ending?
  private var answer: Answer?
  /// Batches of failures that are not on the feedback list for certain. No answer may prove them accepted before.
  private(set) var undurable = 0
  private var isAnswerHeld = false
  private var hasPeerEnded = false
  /// Nothing is answered until it is over.
  private var isSilent = false
  private var held: Held?

  init(_ rules: Behavior.Response, linger: TimeAmount, generator: SplitMix64) {
    (self.rules, self.linger, self.generator) = (rules, linger, generator)
  }

  /// Received bytes are looked at.
  var isReading: Bool {
    switch phase {
    case .handshake, .closed: false
    case .open, .answering, .lingering: end != .refused
    }
  }

  /// Whether a rule applies that does with this probability.
  mutating func isHit(_ probability: Double) -> Bool { generator.isHit(probability) }

  mutating func note(problem: String) { self.problem = self.problem ?? problem }

  /// Answers so from now on; a response that is being sent is not changed.
  mutating func adopt(_ rules: Behavior.Response) { self.rules = rules }

  /// Nothing is answered until `endSilence`.
  mutating func beSilent() { isSilent = true }

  /// Sends what was due meanwhile.
  mutating func endSilence(at now: NIODeadline) -> [Action] {
    isSilent = false
    defer { held = nil }
    switch held {
    case .answer: return answerIsDue(at: now)
    case .piece: return pieceIsDue(at: now)
    case nil: return []
    }
  }

  // MARK: the beginning

  /// The handshake is complete.
  mutating func open() { phase = .open }

  /// A rule closes the connection right after its handshake.
  mutating func refuse() -> [Action] {
    end = .refused
    return [.close]
  }

  // MARK: the answer

  /// The session has ended: sends the error response, modified by `Behavior.Response`, then closes.
  mutating func answer(_ ending: GatewaySession.Ending, at now: NIODeadline) -> [Action] {
    guard phase == .open else { return [] }
    phase = .answering
    self.ending = ending
    var actions: [Action] = []
    switch ending.cause {
    case .shutdown: end = end ?? .shutdown
    case .rejected:
      end = .rejected
      actions = [.report(.refused(ending.status))]
    case .malformed:
      end = .rejected
      actions = [.report(.refused(ending.status)), .report(.malformed)]
    }
    if rules.delay.upperBound <= .zero { return actions + answerIsDue(at: now) }
    let delay = rules.delay.lowerBound.nanoseconds...rules.delay.upperBound.nanoseconds
    return actions + [.answerLater(.nanoseconds(Int64.random(in: delay, using: &generator)))]
  }

  /// Sends the answer, unless a failure that it would prove accepted is not on the feedback list yet: `noteDurable` sends
  /// it then. When such a failure is lost for good, the connection ends without it.
  mutating func answerIsDue(at now: NIODeadline) -> [Action] {
    guard phase == .answering, let ending else { return [] }
    guard !isSilent else {
      held = .answer
      return []
    }
    guard undurable == 0 else {
      isAnswerHeld = true
      return []
    }
    isAnswerHeld = false
    guard let response = response(to: ending) else {
      return [.report(.noResponse(ending))] + (rules.ending == .rst ? [.reset] : closeOutput(at: now))
    }
    var writer = ByteWriter(capacity: 64)
    response.encode(into: &writer)
    answer = Answer(
      ending: ending, response: response, rest: Array(copying: writer.bytes)[...], pieces: rules.pieces[...])
    return pieceIsDue(at: now)
  }

  private mutating func response(to ending: GatewaySession.Ending) -> ErrorResponse? {
    guard rules.ending == .response, end != .feedbackLost, var response = ending.response else { return nil }
    switch rules.identifier {
    case .right: break
    case .zero: response.identifier = 0
    case .wrong: response.identifier = response.identifier &+ UInt32.random(in: 1...1_000, using: &generator)
    }
    return response
  }

  /// Writes the next piece of the answer.
  mutating func pieceIsDue(at now: NIODeadline) -> [Action] {
    guard phase == .answering, var answer else { return [] }
    guard !isSilent else {
      held = .piece
      return []
    }
    let length = min(answer.rest.count, max(1, answer.pieces.first ?? answer.rest.count))
    let piece = Array(answer.rest.prefix(length))
    answer.rest = answer.rest.dropFirst(length)
    answer.pieces = answer.pieces.dropFirst()
    self.answer = answer
    return [.write(piece)] + (answer.rest.isEmpty ? closeOutput(at: now) : [.writeLater(rules.pieceDelay)])
  }

  /// An error response counts when the system has taken all of it.
  mutating func wrote(_ length: Int) -> [Action] {
    guard var answer else { return [] }
    answer.written += length
    guard answer.written == ErrorResponse.length else {
      self.answer = answer
      return []
    }
    self.answer = nil
    return [.report(.responded(answer.ending, answer.response))]
  }

  /// Closes the gateway's direction and continues to read: discarded notifications are counted, and closing with unread
  /// bytes would send a RST, which can destroy the answer in the peer's kernel.
  private mutating func closeOutput(at now: NIODeadline) -> [Action] {
    phase = .lingering(until: now + linger)
    return hasPeerEnded ? leave() : [.closeOutput]
  }

  // MARK: the feedback list

  /// Failures go to the feedback list; `noteDurable` follows.
  mutating func noteUndurable() { undurable += 1 }

  /// Failures are durable on the list, or lost for a reason.
  mutating func noteDurable(lostBecause problem: String?, at now: NIODeadline) -> [Action] {
    undurable -= 1
    let actions = problem.map { lost($0) } ?? []
    return actions + (undurable == 0 && isAnswerHeld ? answerIsDue(at: now) : [])
  }

  /// Nothing may prove these failures accepted any more: the connection ends without an answer, now or when it is due.
  private mutating func lost(_ problem: String) -> [Action] {
    guard phase == .open || phase == .answering else { return [] }
    note(problem: problem)
    if phase == .open { return close(as: .feedbackLost) }
    end = .feedbackLost
    return []
  }

  // MARK: the end

  mutating func peerEnded() -> [Action] {
    guard !hasPeerEnded else { return [] }
    hasPeerEnded = true
    switch phase {
    case .answering: return []
    case .lingering: return leave()
    case .handshake, .open, .closed:
      end = end ?? (phase == .handshake ? .handshakeFailed : .peerFin)
      return leave()
    }
  }

  mutating func fail(_ failure: Failure) -> [Action] {
    switch failure {
    case .handshake(let reason):
      guard phase == .handshake, end == nil else { break }
      end = .handshakeFailed
      return [.report(.handshakeFailed(reason: reason)), .close]
    case .tls: end = end ?? .tlsError
    case .network: end = end ?? (phase == .handshake ? .handshakeFailed : .peerRst)
    }
    return [.close]
  }

  /// Closes without an answer.
  mutating func close(as end: End) -> [Action] {
    self.end = end
    return leave()
  }

  /// The connection is as old as connections may become; `shutDown` follows.
  mutating func noteLifetime() { end = .lifetime }

  /// Closes with a RST.
  mutating func cut() -> [Action] {
    end = end ?? .local
    return [.reset]
  }

  /// The gateway ends: the session's ending is answered, if it had anything to shut down.
  mutating func shutDown(_ ending: GatewaySession.Ending?, at now: NIODeadline) -> [Action] {
    switch phase {
    case .open:
      if let ending { return answer(ending, at: now) }
      return leave()
    case .handshake: return leave()
    case .answering, .lingering, .closed: return []
    }
  }

  /// Closes when it has lingered for long enough.
  mutating func passed(_ now: NIODeadline) -> [Action] {
    guard case .lingering(let until) = phase, now >= until else { return [] }
    return leave()
  }

  /// Closes at once.
  mutating func leave() -> [Action] {
    end = end ?? .local
    return [.close]
  }

  /// The connection is closed. Returns how it ended, and what is to be reported; `nil`: it was closed before.
  mutating func finish() -> (end: End, hadHandshake: Bool, reports: [Report])? {
    guard phase != .closed else { return nil }
    let hadHandshake = phase != .handshake
    if !hadHandshake { end = end ?? .handshakeFailed }
    phase = .closed
    var reports: [Report] = []
    if let answer {
      reports = [.respondedInPart(answer.ending, answer.response, written: answer.written)]
      self.answer = nil
    }
    return (end ?? .peerRst, hadHandshake, reports)
  }
}
