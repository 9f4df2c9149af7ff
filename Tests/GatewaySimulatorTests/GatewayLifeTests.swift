import BinaryProtocol
import Measurement
import NIOCore
import PushModel
import Testing

@testable import GatewaySimulator

/// Conversations: what happens to a connection, and what the gateway is to do.
@Suite("The life of a connection on the gateway's side")
struct GatewayLifeTests {
  private static let start = NIODeadline.uptimeNanoseconds(1_000_000_000)
  private static let linger = TimeAmount.seconds(2)

  private func life(_ change: (inout Behavior.Response) -> Void = { _ in }) -> GatewayLife {
    var rules = Behavior.Response()
    change(&rules)
    return GatewayLife(rules, linger: Self.linger, generator: SplitMix64(seed: 1))
  }

  private func open(_ change: (inout Behavior.Response) -> Void = { _ in }) -> GatewayLife {
    var life = life(change)
    life.open()
    return life
  }

  private func rejection(_ identifier: UInt32? = 7) -> GatewaySession.Ending {
    GatewaySession.Ending(
      cause: .rejected, status: .invalidToken, notification: 3, identifier: identifier,
      response: identifier.map { ErrorResponse(status: .invalidToken, identifier: $0) })
  }

  private let shutdown = GatewaySession.Ending(
    cause: .shutdown, status: .shutdown, notification: 4, identifier: 9,
    response: ErrorResponse(status: .shutdown, identifier: 9))

  private let bytes: [UInt8] = [8, 8, 0, 0, 0, 7]

  @Test("An answer is written, counted when it is sent, and the gateway lingers")
  func answer() throws {
    var life = open()
    #expect(
      life.answer(rejection(), at: Self.start) == [.report(.refused(.invalidToken)), .write(bytes), .closeOutput])
    #expect(life.phase == .lingering(until: Self.start + Self.linger) && life.end == .rejected)
    #expect(life.wrote(6) == [.report(.responded(rejection(), ErrorResponse(status: .invalidToken, identifier: 7)))])
    #expect(life.passed(Self.start + .seconds(1)) == [])
    #expect(life.passed(Self.start + Self.linger) == [.close])
    let ended = life.finish()
    let finished = try #require(ended)
    let again = life.finish()
    #expect(finished.end == .rejected && finished.reports == [] && again == nil)
  }

  @Test("A second ending has no second answer")
  func twice() {
    var life = open()
    _ = life.answer(rejection(), at: Self.start)
    #expect(life.answer(shutdown, at: Self.start) == [] && life.shutDown(shutdown, at: Self.start) == [])
    #expect(life.answerIsDue(at: Self.start) == [] && life.end == .rejected)
  }

  @Test("An answer in pieces counts with its last byte")
  func pieces() {
    var life = open { ($0.pieces, $0.pieceDelay) = ([1, 2], .milliseconds(5)) }
    #expect(
      life.answer(rejection(), at: Self.start) == [
        .report(.refused(.invalidToken)), .write([8]), .writeLater(.milliseconds(5)),
      ])
    #expect(life.wrote(1) == [])
    #expect(life.pieceIsDue(at: Self.start) == [.write([8, 0]), .writeLater(.milliseconds(5))])
    #expect(life.phase == .answering && life.wrote(2) == [])
    #expect(life.pieceIsDue(at: Self.start) == [.write([0, 0, 7]), .closeOutput])
    #expect(life.wrote(3).count == 1 && life.pieceIsDue(at: Self.start) == [])
  }

  @Test("A connection that closes within its answer has sent a part of it")
  func part() throws {
    var life = open { $0.pieces = [2] }
    _ = life.answer(rejection(), at: Self.start)
    _ = life.wrote(2)
    #expect(life.fail(.network) == [.close])
    let ended = life.finish()
    let finished = try #require(ended)
    let response = ErrorResponse(status: .invalidToken, identifier: 7)
    #expect(finished.reports == [.respondedInPart(rejection(), response, written: 2)])
    #expect(finished.end == .rejected && life.pieceIsDue(at: Self.start) == [] && life.wrote(4) == [])
  }

  @Test("A delayed answer comes after a time that is drawn from its range")
  func delay() {
    var life = open { $0.delay = Duration.milliseconds(100)...Duration.milliseconds(800) }
    let actions = life.answer(shutdown, at: Self.start)
    guard case .answerLater(let delay) = actions.first, actions.count == 1 else {
      Issue.record("no delay: \(actions)")
      return
    }
    let range = Duration.milliseconds(100)...Duration.milliseconds(800)
    #expect(range.contains(delay) && life.phase == .answering)
    #expect(life.answerIsDue(at: Self.start) == [.write([8, 10, 0, 0, 0, 9]), .closeOutput])
    #expect(life.end == .shutdown)
  }

  @Test("Without a response the connection is closed, or reset")
  func noResponse() {
    for (ending, last) in [(Behavior.Response.Ending.fin, GatewayLife.Action.closeOutput), (.rst, .reset)] {
      var life = open { $0.ending = ending }
      #expect(
        life.answer(rejection(), at: Self.start) == [
          .report(.refused(.invalidToken)), .report(.noResponse(rejection())), last,
        ])
    }
    // Command 0 has no identifier to be named by.
    var life = open()
    #expect(
      life.answer(rejection(nil), at: Self.start) == [
        .report(.refused(.invalidToken)), .report(.noResponse(rejection(nil))), .closeOutput,
      ])
  }

  @Test("An identifier is right, 0 or another one")
  func identifiers() {
    for (kind, isRight) in [(Behavior.Response.Identifier.right, true), (.zero, false), (.wrong, false)] {
      var life = open { $0.identifier = kind }
      let actions = life.answer(rejection(), at: Self.start)
      #expect(actions.contains(.write(bytes)) == isRight)
      #expect(actions.contains(.write([8, 8, 0, 0, 0, 0])) == (kind == .zero))
    }
  }

  // MARK: the feedback list

  @Test("An answer waits until failures are on the feedback list")
  func held() {
    var life = open()
    life.noteUndurable()
    life.noteUndurable()
    #expect(life.answer(rejection(), at: Self.start) == [.report(.refused(.invalidToken))])
    #expect(life.noteDurable(lostBecause: nil, at: Self.start) == [])
    #expect(life.noteDurable(lostBecause: nil, at: Self.start) == [.write(bytes), .closeOutput])
  }

  @Test("What is durable before an answer is due sends nothing")
  func durable() {
    var life = open { $0.delay = Duration.seconds(1)...Duration.seconds(1) }
    life.noteUndurable()
    _ = life.answer(rejection(), at: Self.start)
    #expect(life.noteDurable(lostBecause: nil, at: Self.start) == [])
    #expect(life.answerIsDue(at: Self.start) == [.write(bytes), .closeOutput])
  }

  @Test("A failure that is lost ends the connection without an answer that would prove it accepted")
  func lost() throws {
    var life = open()
    life.noteUndurable()
    #expect(life.noteDurable(lostBecause: "disk full", at: Self.start) == [.close])
    #expect(life.end == .feedbackLost && life.problem == "disk full")

    life = open()
    life.noteUndurable()
    _ = life.answer(rejection(), at: Self.start)
    #expect(
      life.noteDurable(lostBecause: "disk full", at: Self.start) == [.report(.noResponse(rejection())), .closeOutput])
    let ended = life.finish()
    #expect(ended?.end == .feedbackLost)
  }

  // MARK: the end

  @Test("A provider's end is the end, unless an answer is on its way")
  func peer() {
    var life = life()
    #expect(life.peerEnded() == [.close] && life.end == .handshakeFailed)

    life = open()
    #expect(life.peerEnded() == [.close] && life.end == .peerFin && life.peerEnded() == [])

    life = open { $0.delay = Duration.seconds(1)...Duration.seconds(1) }
    _ = life.answer(rejection(), at: Self.start)
    #expect(life.peerEnded() == [])
    #expect(life.answerIsDue(at: Self.start) == [.write(bytes), .close], "it does not linger for nobody")

    life = open()
    _ = life.answer(rejection(), at: Self.start)
    #expect(life.peerEnded() == [.close] && life.end == .rejected)
  }

  @Test("A failure is the reason for the end, if there was none")
  func failures() throws {
    var life = life()
    #expect(life.fail(.handshake(reason: "no")) == [.report(.handshakeFailed(reason: "no")), .close])
    let ended = life.finish()
    let finished = try #require(ended)
    #expect(finished.end == .handshakeFailed && !finished.hadHandshake)

    life = self.life()
    #expect(life.fail(.network) == [.close] && life.end == .handshakeFailed)

    life = open()
    #expect(life.fail(.network) == [.close] && life.end == .peerRst)
    #expect(life.fail(.tls) == [.close] && life.end == .peerRst)

    life = open()
    #expect(life.fail(.tls) == [.close] && life.end == .tlsError)

    life = open()
    let last = life.finish()
    #expect(last?.end == .peerRst)
  }

  @Test("A refused connection is closed at once, and nothing of it is read")
  func refused() throws {
    var life = life()
    #expect(!life.isReading)
    life.open()
    #expect(life.isReading)
    #expect(life.refuse() == [.close] && !life.isReading)
    let ended = life.finish()
    #expect(ended?.end == .refused)
  }

  @Test("A shutdown answers what was received, and closes what was silent")
  func shutDown() {
    var life = open()
    #expect(life.shutDown(shutdown, at: Self.start) == [.write([8, 10, 0, 0, 0, 9]), .closeOutput])
    #expect(life.end == .shutdown)

    life = open()
    #expect(life.shutDown(nil, at: Self.start) == [.close] && life.end == .local)

    life = self.life()
    #expect(life.shutDown(nil, at: Self.start) == [.close] && life.end == .local)

    life = open()
    life.noteLifetime()
    #expect(life.shutDown(shutdown, at: Self.start).last == .closeOutput && life.end == .lifetime)
  }

  @Test("The first problem is the one that is reported")
  func problems() {
    var life = open()
    life.note(problem: "first")
    life.note(problem: "second")
    #expect(life.problem == "first")
  }
}
