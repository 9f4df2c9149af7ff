import Bytes
import HTTP2
import HTTP2Server
import Measurement
import ProviderAPI

/// Faults on demand. None of this is called while no fault is set.
extension ProviderGateway {
  // MARK: what the transport asks

  /// Whether faults are set, or something waits because of an earlier one: `receive` and `advance` then need the time.
  var isDisturbed: Bool { faults != nil }
  /// Whether nothing is sent any more.
  var isSilent: Bool { faults?.outputEnd != nil }
  /// When `advance` is to be called, in ns of the loop's clock.
  var nextDue: Int64? { faults?.nextDue(isEnding: session.hasSaidGoAway) }
  /// Whether a request has begun and waits for its client.
  var isWithinRequest: Bool { isDisturbed ? session.hasUnfinishedRequest : session.isWithinRequest }

  /// The actions on the connection that are due.
  mutating func takeEffects() -> [ConnectionFaults.Effect] {
    guard let faults, !faults.effects.isEmpty else { return [] }
    defer { faults.effects = [] }
    return faults.effects
  }

  /// Has other faults from now on. One that was there already goes on. Channel management has none.
  ///
  /// - Parameter tick: ns of the loop's clock.
  mutating func adopt(_ active: [ActiveFault], tick: Int64) {
    guard service.purpose == .notifications, !active.isEmpty || faults != nil else { return }
    let faults =
      faults
      ?? ConnectionFaults(
        connection: connection, generator: SplitMix64(seed: policy.seed ^ 0x6661_756c_7473_2121, stream: connection),
        tick: tick)
    if self.faults == nil { faults.highestAnswered = session.highestStream }
    faults.note(tick)
    faults.adopt(active)
    self.faults = faults.isIdle ? nil : faults
  }

  // MARK: notifications

  /// Decides on a request whose content is complete, and on its answer.
  ///
  /// - Returns: `false` if no fault concerns it.
  mutating func endDisturbed(_ slot: Int, _ content: RawSpan, _ length: Int, _ isNotification: Bool) -> Bool {
    guard let faults else { return false }
    let stream = session.stream(of: slot)
    guard faults.outputEnd == nil else {
      // Nobody answers any more.
      if isNotification {
        counts.discarded += 1
        counts.unknownDiscarded += 1
        served?.append(.init(stream: stream, fate: .discarded))
      }
      session.forget(slot)
      return true
    }
    faults.highestAnswered = max(faults.highestAnswered, stream)
    guard isNotification else { return false }
    // The copy shares its memory, and is gone before the next request is read into this place.
    let request = requests[slot].request
    let hits = faults.hits(
      request, index: requests[slot].index, isEnding: session.hasSaidGoAway || faults.notice != nil)
    guard !hits.isEmpty else { return false }
    for kind in hits { counts.faults[kind.name, default: 0] += 1 }
    disturb(slot, stream, content, length, hits)
    return true
  }

  private mutating func disturb(
    _ slot: Int, _ stream: UInt32, _ content: RawSpan, _ length: Int, _ hits: [HTTP2Fault.Kind]
  ) {
    guard let faults else { return }
    // Not processed at all.
    if hits.contains(.refuse) {
      counts.discarded += 1
      served?.append(.init(stream: stream, fate: .discarded))
      session.reset(slot, .refusedStream)
    } else if hits.contains(.silence(ofConnection: true)) {
      counts.discarded += 1
      counts.unknownDiscarded += 1
      served?.append(.init(stream: stream, fate: .discarded))
      session.forget(slot)
    } else {
      var answer = answer(slot, stream, verdict(slot, content, length, hits), hits)
      var delay: Int64 = 0
      for kind in hits {
        switch kind {
        case .delay(let time): delay += faults.draw(time)
        case .disorder(let disorder): answer.disorder = disorder
        case .silence: answer.disposal = .nothing
        case .reset(let code): answer.disposal = .reset(code)
        case .close(let cut): answer.disposal = .close(cut)
        case .frame(let wrong): answer.wrong.append(wrong)
        case .answer, .throttle, .refuse, .goAway, .streamLimit, .slowReading: break
        }
      }
      if delay > 0 { faults.hold(answer, for: delay) } else { pass(answer) }
    }
    for kind in hits { disturbConnection(kind) }
  }

  /// The decision on a notification, which a fault may have made.
  private mutating func verdict(
    _ slot: Int, _ content: RawSpan, _ length: Int, _ hits: [HTTP2Fault.Kind]
  ) -> Verdict {
    for kind in hits {
      switch kind {
      case .throttle: return .rejected(.tooManyRequests, status: 429)
      case .answer(let altered):
        guard let status = altered.status, !(200...299).contains(status) else { continue }
        return .rejected(.internalServerError, status: status)
      default: break
      }
    }
    return decide(slot, content, length)
  }

  /// Counts a decision, and makes its answer.
  private mutating func answer(
    _ slot: Int, _ stream: UInt32, _ verdict: Verdict, _ hits: [HTTP2Fault.Kind]
  ) -> ConnectionFaults.Answer {
    var altered: HTTP2Fault.AlteredAnswer?
    for case .answer(let answer) in hits { altered = answer }
    var answer = ConnectionFaults.Answer(slot: slot, stream: stream, status: 200)
    var reason: ProviderReason?
    switch verdict {
    case .accepted: answer.status = altered?.status ?? 200
    case .rejected(let cause, let status):
      (answer.status, reason, answer.content) = (status, cause, Self.content(cause))
    case .unregistered(let time):
      (answer.status, reason, answer.content) = (410, .unregistered, Self.content(.unregistered, time))
    }
    if let content = altered?.content {
      // No reason is told.
      if reason != nil { reason = ProviderReason(rawValue: "HTTP \(answer.status)") }
      switch content {
      case .none: answer.content = nil
      case .html:
        answer.content = Array("<html><body>\(answer.status)</body></html>".utf8)
        answer.isHTML = true
      case .cut: answer.content = Array("{\"reason\":\"Inter".utf8)
      case .empty: answer.content = Array("{}".utf8)
      }
    }
    if let reason { counts.rejected[reason, default: 0] += 1 } else { counts.accepted += 1 }
    served?.append(
      .init(stream: stream, fate: reason == nil ? .accepted : .rejected, status: answer.status, reason: reason))
    requests[slot].progress = .decided(isAccepted: reason == nil)
    return answer
  }

  // MARK: answers

  /// Sends an answer, or lets it wait for others.
  private mutating func pass(_ answer: ConnectionFaults.Answer) {
    if let disorder = answer.disorder { faults?.gather(answer, disorder) } else { send(answer) }
  }

  private mutating func send(_ answer: ConnectionFaults.Answer) {
    // The client may have reset the stream, and opened another one in its place.
    guard session.stream(of: answer.slot) == answer.stream, !isSilent, !session.hasFailed,
      case .decided(let isAccepted) = requests[answer.slot].progress
    else { return }
    let slot = answer.slot
    if answer.disposal == .nothing { return }
    if case .reset(let code) = answer.disposal {
      counts.noteUnknown(isAccepted: isAccepted)
      return session.reset(slot, code)
    }
    for wrong in answer.wrong where wrong != .secondAnswer {
      session.output.write(wrong, stream: answer.stream, highest: session.highestStream)
    }
    guard !answer.wrong.contains(where: \.replacesAnswer) else {
      counts.noteUnknown(isAccepted: isAccepted)
      return session.forget(slot)
    }
    let start = session.output.count
    let told = writeAnswer(
      slot, answer.status, answer.content, isHTML: answer.isHTML, isBroken: answer.wrong.contains(.upperCase))
    if answer.wrong.contains(.secondAnswer) {
      session.output.write(.secondAnswer, stream: answer.stream, highest: session.highestStream)
    }
    guard case .close(let cut) = answer.disposal else { return noteAnswer(answer.status) }
    let fields = FrameHeader(session.output.bytes, at: start).frameLength
    let length = min(cut.bytes ?? fields / 2, session.output.count - start - 1)
    session.output.truncate(to: start + length)
    // A recording shows a status as soon as it is there.
    if start + length < told {
      counts.noteUnknown(isAccepted: isAccepted)
    } else {
      noteAnswer(answer.status)
      counts.unanswered += 1
    }
    endOutput(.close(isReset: cut.isReset))
  }

  // MARK: the connection

  private mutating func disturbConnection(_ kind: HTTP2Fault.Kind) {
    guard let faults, faults.outputEnd == nil else { return }
    switch kind {
    case .goAway(let goAway): sayGoAway(goAway)
    case .streamLimit(let limit): session.setStreamLimit(limit)
    case .slowReading(let rate):
      if let rate { faults.effects.append(.slow(bytesPerSecond: rate)) } else { session.opensWindows = false }
    case .silence(ofConnection: true): endOutput(nil)
    case .delay, .disorder, .silence, .refuse, .reset, .throttle, .close, .frame, .answer: break
    }
  }

  /// Nothing is written, and nothing is processed, any more. Answers that wait never come.
  private mutating func endOutput(_ effect: ConnectionFaults.Effect?) {
    faults?.outputEnd = session.output.count
    if let effect { faults?.effects.append(effect) }
  }

  private mutating func sayGoAway(_ goAway: HTTP2Fault.GoAway) {
    guard let faults else { return }
    let reason = goAway.reason.isEmpty ? [] : Self.content(ProviderReason(rawValue: goAway.reason))
    if goAway.last == .notice, faults.notice == nil {
      session.goAway(lastStream: 0x7fff_ffff, goAway.code, debugData: reason)
      faults.notice = (faults.tick + goAway.grace.nanoseconds, goAway)
      return
    }
    faults.notice = nil
    let last = goAway.last == .answered ? faults.highestAnswered : session.highestStream
    session.goAway(lastStream: last, goAway.code, debugData: reason)
    for slot in session.openSlots where session.stream(of: slot) > last {
      // What is above was not complete: what was, is not.
      if requests[slot].request.target.isNotification {
        counts.received += 1
        counts.discarded += 1
        served?.append(.init(stream: session.stream(of: slot), fate: .discarded))
      } else {
        counts.otherRequests += 1
      }
      session.forget(slot)
    }
    switch goAway.end {
    case .drain: faults.effects.append(.drain)
    case .fin: endOutput(.close(isReset: false))
    case .rst: endOutput(.close(isReset: true))
    }
  }

  /// Sends the answers whose time has come, and does what periods and idleness ask for.
  mutating func doWhatIsDue(at tick: Int64) {
    guard let faults else { return }
    faults.note(tick)
    while !isSilent, let answer = faults.takeDue() { pass(answer) }
    for answer in faults.takeGroup() { send(answer) }
    if let notice = faults.notice, notice.due <= faults.tick, !isSilent { sayGoAway(notice.goAway) }
    for kind in faults.hitsOfTime(isEnding: session.hasSaidGoAway || faults.notice != nil) {
      counts.faults[kind.name, default: 0] += 1
      disturbConnection(kind)
    }
    settleOutput()
    if faults.isIdle { self.faults = nil }
  }

  /// Takes back what was written behind the end of the output.
  mutating func settleOutput() {
    guard let faults else { return }
    // A read may have brought the last answer of a group.
    if faults.outputEnd == nil { for answer in faults.takeGroup() { send(answer) } }
    guard let end = faults.outputEnd else { return }
    session.output.truncate(to: min(end, session.output.count))
    // What is there now is sent before the next call.
    faults.outputEnd = 0
  }
}

extension ProviderReason {
  fileprivate static let tooManyRequests = ProviderReason(rawValue: "TooManyRequests")
  fileprivate static let internalServerError = ProviderReason(rawValue: "InternalServerError")
}
