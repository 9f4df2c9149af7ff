import BinaryProtocol
import NIOCore
import TLSTransport

/// Performs the actions of a `GatewayLife`: on the transport, in the counts and in the log.
extension GatewayHandler {
  func perform(_ actions: [GatewayLife.Action]) {
    for action in actions { perform(action) }
  }

  private func perform(_ action: GatewayLife.Action) {
    switch action {
    case .answerLater(let delay): later(delay) { $0.answerIsDue(at: $1) }
    case .writeLater(let delay): later(delay) { $0.pieceIsDue(at: $1) }
    case .write(let bytes): write(bytes)
    case .closeOutput: closeOutput()
    case .reset:
      observeEnd(isReset: true)
      closeAbruptly()
    case .close: context?.close(promise: nil)
    case .report(let report): note(report)
    }
  }

  private func later(
    _ delay: Duration, _ body: @escaping (inout GatewayLife, NIODeadline) -> [GatewayLife.Action]
  ) {
    let loop = loopState.loop
    loop.assumeIsolated().scheduleTask(in: delay.timeAmount) { self.perform(body(&self.life, loop.now)) }
  }

  private func write(_ bytes: [UInt8]) {
    guard let context else { return }
    let bytes = ByteBuffer(bytes: bytes)
    context.writeAndFlush(wrapOutboundOut(bytes)).assumeIsolated().whenSuccess {
      self.shared.observe(self.number, .sent(bytes))
      self.perform(self.life.wrote(bytes.readableBytes))
    }
  }

  private func closeOutput() {
    guard let context else { return }
    guard shared.observer != nil else { return context.close(mode: .output, promise: nil) }
    // The peer may close before this does.
    let closed = context.eventLoop.makePromise(of: Void.self)
    closed.futureResult.assumeIsolated().whenSuccess { self.observeEnd(isReset: false) }
    context.close(mode: .output, promise: closed)
  }

  private func observeEnd(isReset: Bool) {
    isEndObserved = true
    shared.observe(number, .closing(byPeer: false, isReset: isReset))
  }

  func note(_ report: GatewayLife.Report) {
    switch report {
    case .refused(let status): loopState.tally.rejected[.status(status), default: 0] += 1
    case .malformed: loopState.tally.malformed += 1
    case .handshakeFailed(let reason): shared.log?.write(event("handshake_failed", reason: reason))
    case .noResponse(let ending): log(ending, nil)
    case .responded(let ending, let response):
      loopState.tally.errorResponses[.status(response.status), default: 0] += 1
      log(ending, response)
    case .respondedInPart(let ending, let response, let written):
      loopState.tally.errorResponsesIncomplete += 1
      log(ending, response, written: written)
    }
  }
}
