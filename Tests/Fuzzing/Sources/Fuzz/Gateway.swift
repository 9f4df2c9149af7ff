import BinaryProtocol
import Bytes

/// What a gateway is told to be, from the first five bytes of an input.
private struct GatewayChoice {
  var rules: GatewaySession.Rules
  var standing: ErrorResponse.Status?
  var shutdownAfter: Int
  /// Every so many notifications that keep the rules are refused; 0 for none.
  var refusesEvery: Int
  /// The sizes of pieces follow from this.
  var pieces: UInt8

  init(_ script: inout Script) {
    let choice = script.byte()
    rules = GatewaySession.Rules(
      tokenLengths: choice & 1 != 0 ? 32...100 : 32...32,
      maximumPayloadLength: [256, 2_048, 4_096, 20][choice >> 1 & 3], checksPriority: choice & 8 == 0,
      answersMalformed: choice & 16 == 0)
    if choice & 32 != 0 {
      rules.limits = ProtocolLimits(maximumFrameLength: 100, maximumTokenLength: 32, maximumPayloadLength: 40)
    }
    standing = choice & 64 != 0 ? .missingTopic : nil
    let shutdown = script.byte()
    shutdownAfter = shutdown == 0 ? .max : shutdown - 1
    refusesEvery = script.byte() & 31
    pieces = UInt8(script.byte())
  }
}

/// The gateway's session over a stream: at once, and again in pieces.
@Sendable func fuzzGateway(_ bytes: RawSpan) {
  var script = Script(bytes)
  let choice = GatewayChoice(&script)
  let stopsAfter = script.byte()
  let stream = script.rest()
  let whole = run(choice, stream, pieces: 0, stopsAfter: nil)
  checkCounts(whole, stream, choice.rules.limits)
  let split = run(choice, stream, pieces: choice.pieces | 1, stopsAfter: nil)
  law(split.ending == whole.ending, "pieces end otherwise: \(String(describing: split.ending))")
  law(
    split.accepted == whole.accepted && split.rejected == whole.rejected && split.discarded == whole.discarded
      && split.bytes == whole.bytes, "pieces are counted otherwise")
  // Told to go away between two pieces.
  let stopped = run(choice, stream, pieces: choice.pieces | 1, stopsAfter: stopsAfter)
  law(stopped.ending != nil, "told to shut down, and did not")
  checkCounts(stopped, stream, choice.rules.limits)
}

private func run(
  _ choice: GatewayChoice, _ stream: RawSpan, pieces: UInt8, stopsAfter: Int?
) -> GatewaySession {
  var session = GatewaySession(rules: choice.rules, standing: choice.standing)
  session.shutdownAfter = choice.shutdownAfter
  var (consumed, given, piece, asked) = (0, 0, 0, 0)
  var state = UInt32(pieces)
  repeat {
    if pieces == 0 {
      given = stream.byteCount
    } else {
      state = state &* 1_664_525 &+ 1_013_904_223
      // Small pieces and large ones, some of nothing.
      given = min(stream.byteCount, given + Int(state >> 24) >> (pieces & 2 == 0 ? 0 : 4))
    }
    let input = stream.extracting(consumed..<given)
    let (hadEnding, before) = (session.ending, asked)
    let count = session.receive(input) { notification in
      asked += 1
      law(hadEnding == nil, "asked behind the end")
      law(
        choice.rules.push.tokenLengths.contains(notification.token.byteCount), "a token of a bad size was let through")
      law(notification.payload.byteCount <= choice.rules.push.maximumPayloadLength, "a long payload was let through")
      return choice.refusesEvery > 0 && asked % choice.refusesEvery == 0 ? .status(.invalidToken) : nil
    }
    law(count >= 0 && count <= input.byteCount, "\(count) of \(input.byteCount) bytes consumed")
    consumed += count
    law(session.bytes == consumed, "bytes are missing")
    law(session.received == session.accepted + session.rejected + session.discarded, "counts do not add up")
    law(session.rejected <= 1 && session.accepted <= choice.shutdownAfter, "too many")
    law(asked - before <= session.received && asked <= session.accepted + 1, "one was asked about twice")
    law(hadEnding == nil || session.ending == hadEnding, "it ended twice")
    check(session)
    // What is left over is one frame that is not whole, and its length has a bound.
    if count < input.byteCount {
      let extent = BinaryFrame.extent(of: input, at: count, limits: choice.rules.limits)
      guard case .incomplete(let needed) = extent else { return broken("left over: \(extent)", session) }
      let limits = choice.rules.limits
      law(needed > input.byteCount - count, "a whole frame is left over")
      law(
        needed <= max(limits.maximumFrameLength + 5, limits.maximumTokenLength + limits.maximumPayloadLength + 13),
        "\(needed) bytes are waited for")
    }
    if piece == stopsAfter || stopsAfter != nil && given == stream.byteCount { session.shutDown() }
    piece += 1
  } while given < stream.byteCount
  return session
}

private func broken(_ text: String, _ session: GatewaySession) -> GatewaySession {
  law(false, text)
  return session
}

private func check(_ session: GatewaySession) {
  guard let ending = session.ending else {
    law(session.accepted == session.received, "refused without an end")
    return
  }
  switch ending.cause {
  case .shutdown:
    law(session.rejected == 0, "a shutdown refused one")
    law(ending.notification == (session.accepted == 0 ? nil : session.accepted - 1), "another than the last accepted")
    law(ending.response?.identifier == ending.identifier ?? 0 && ending.status == .shutdown, "shutdown's answer")
  case .rejected, .malformed:
    law(session.rejected == 1 && ending.notification == session.accepted, "another than the refused one is named")
    if let response = ending.response {
      law(
        response.identifier == ending.identifier ?? 0 && response.status == ending.status, "the answer says otherwise")
    }
  }
}

/// The frames that a plain walk finds are those that were counted.
private func checkCounts(_ session: GatewaySession, _ stream: RawSpan, _ limits: ProtocolLimits) {
  var (offset, frames, isLost) = (0, 0, false)
  walk: while offset < stream.byteCount {
    switch BinaryFrame.extent(of: stream, at: offset, limits: limits) {
    case .complete(let length):
      offset += length
      frames += 1
    case .incomplete: break walk
    case .malformed:
      isLost = true
      break walk
    }
  }
  let endedThere = isLost && session.rejected == 1 && session.ending?.notification == frames
  law(session.received == frames + (endedThere ? 1 : 0), "\(session.received) counted, \(frames) frames")
  // Without an end everything up to what is not whole was taken; with one, garbage too.
  law(session.bytes == (isLost ? stream.byteCount : offset), "\(session.bytes) bytes taken")
}
