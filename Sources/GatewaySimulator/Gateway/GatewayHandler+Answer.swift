import BinaryProtocol
import Bytes
import Measurement
import NIOCore
import PushModel
import TLSTransport

/// How the gateway ends a connection: the error response, modified by `Behavior.Response`, then the close.
extension GatewayHandler {
  func answer(_ ending: GatewaySession.Ending) {
    guard phase == .open else { return }
    phase = .answering
    switch ending.cause {
    case .shutdown: if end == nil { end = .shutdown }
    case .rejected: refuse(ending)
    case .malformed:
      refuse(ending)
      loopState.tally.malformed += 1
    }
    let delay = shared.behavior.response.delay
    if delay.upperBound <= .zero {
      sendAnswer()
    } else {
      let drawn = Int64.random(in: delay.lowerBound.nanoseconds...delay.upperBound.nanoseconds, using: &generator)
      context?.eventLoop.assumeIsolated().scheduleTask(in: .nanoseconds(drawn)) { self.sendAnswer() }
    }
  }

  private func refuse(_ ending: GatewaySession.Ending) {
    end = .rejected
    loopState.tally.rejected[.status(ending.status), default: 0] += 1
  }

  /// Sends it, unless a failure that it would prove accepted is not on the feedback list yet: then that calls again. When
  /// such a failure is lost for good, the connection ends without it.
  func sendAnswer() {
    guard phase == .answering, let ending = session.ending, let context else { return }
    guard undurable == 0 else {
      isAnswerHeld = true
      return
    }
    isAnswerHeld = false
    let rules = shared.behavior.response
    var response = ending.response
    if rules.ending != .response || end == .feedbackLost { response = nil }
    if let answered = response?.identifier {
      switch rules.identifier {
      case .right: break
      case .zero: response?.identifier = 0
      case .wrong: response?.identifier = answered &+ UInt32.random(in: 1...1_000, using: &generator)
      }
    }
    if let response {
      unfinishedAnswer = UnfinishedAnswer(ending: ending, response: response)
      var writer = ByteWriter(capacity: 64)
      response.encode(into: &writer)
      return send(Array(copying: writer.bytes)[...], pieces: rules.pieces[...], rules.pieceDelay)
    }
    log(ending, nil)
    if rules.ending == .rst { reset(context) } else { closeOutput(context) }
  }

  private func send(_ bytes: ArraySlice<UInt8>, pieces: ArraySlice<Int>, _ delay: Duration) {
    guard phase == .answering, let context else { return }
    let length = min(bytes.count, max(1, pieces.first ?? bytes.count))
    let rest = bytes.dropFirst(length)
    context.writeAndFlush(wrapOutboundOut(ByteBuffer(bytes: bytes.prefix(length)))).assumeIsolated().whenSuccess {
      self.wroteAnswer(length)
    }
    if rest.isEmpty {
      closeOutput(context)
    } else {
      context.eventLoop.assumeIsolated().scheduleTask(in: delay.timeAmount) {
        self.send(rest, pieces: pieces.dropFirst(), delay)
      }
    }
  }

  /// An error response counts when the system has taken all of it.
  private func wroteAnswer(_ length: Int) {
    guard var answer = unfinishedAnswer else { return }
    answer.written += length
    guard answer.written == ErrorResponse.length else {
      unfinishedAnswer = answer
      return
    }
    unfinishedAnswer = nil
    loopState.tally.errorResponses[.status(answer.response.status), default: 0] += 1
    log(answer.ending, answer.response)
  }

  /// The connection closed before a complete error response was sent.
  func abandonAnswer() {
    guard let answer = unfinishedAnswer else { return }
    unfinishedAnswer = nil
    loopState.tally.errorResponsesIncomplete += 1
    log(answer.ending, answer.response, written: answer.written)
  }

  /// Closes the gateway's direction and continues to read: discarded notifications are counted, and closing with unread
  /// bytes would send a RST, which can destroy the answer in the peer's kernel.
  private func closeOutput(_ context: ChannelHandlerContext) {
    // The answer may have met a reset, which closes at once.
    guard phase == .answering else { return }
    phase = .lingering
    lingerUntil = loopState.loop.now + shared.options.linger.timeAmount
    if hasPeerEnded { leave() } else { context.close(mode: .output, promise: nil) }
  }

  private func reset(_ context: ChannelHandlerContext) {
    // With a linger time of 0, a close sends a RST.
    (context.channel as? any SocketOptionProvider)?.setSoLinger(NIOLinger(l_onoff: 1, l_linger: 0)).whenComplete { _ in
    }
    context.triggerUserOutboundEvent(TLSClose.abrupt, promise: nil)
    context.close(promise: nil)
  }
}

/// An error response that is not completely written.
struct UnfinishedAnswer {
  let ending: GatewaySession.Ending
  /// The response as sent.
  let response: ErrorResponse
  /// Bytes.
  var written = 0
}
