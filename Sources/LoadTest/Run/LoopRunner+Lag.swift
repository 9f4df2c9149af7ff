/// When the first and the last of notifications that follow each other were due; those between them evenly.
struct DueTimes: Equatable {
  /// Nanoseconds of the monotonic clock.
  var first: Int64
  var last: Int64

  init(_ time: Int64) { (first, last) = (time, time) }

  /// - Parameter seconds: since `start`.
  init(_ seconds: (first: Double, last: Double), since start: Int64) {
    first = start + Int64(seconds.first * 1e9)
    last = start + Int64(seconds.last * 1e9)
  }
}

/// Send lag: from when each notification was due until it was written, or abandoned.
extension LoopRunner {
  /// These are written.
  func noteLag(_ piece: SentLog.Piece, _ due: DueTimes, at now: Int64) {
    if piece.attempt > 0 { tally.sendings.resent += piece.count }
    // Collected during the schedule, and written after it: the lag of a phase covers all notifications due in it.
    let isLeftOver = runPhase == .drain && piece.attempt == 0 && due.first < scheduleEnd
    book(isLeftOver ? lastScheduled : runPhase) { $0.measurements.noteLag(piece.count, due, at: now, pauses) }
  }

  /// So many that are due next are left out for good.
  func neverSent(_ count: Int, at now: Int64) {
    var left = count
    // In parts, since they may have become due over a long time, and at a rate that changed.
    let part = max(16, count / 64)
    while left > 0, let due = takenPacer?.take(min(part, left)) {
      let phase = runPhase == .drain ? lastScheduled : runPhase
      book(phase) { $0.measurements.noteLag(min(part, left), DueTimes(due, since: start), at: now, pauses) }
      left -= min(part, left)
    }
  }

  /// These were taken and never written.
  func noteNeverSent(_ pieces: some Sequence<SentLog.Piece>) {
    let now = clock()
    for piece in pieces {
      let due = dueTimes(ofFirst: piece.count, of: piece)
      book(lastScheduled) { $0.measurements.noteLag(piece.count, due, at: now, pauses) }
    }
  }
}

extension LoadMeasurements {
  /// Most lags that a batch is spread over.
  private static let spread = 16

  fileprivate mutating func noteLag(_ count: Int, _ due: DueTimes, at now: Int64, _ pauses: LoopPauses) {
    let parts = due.last > due.first ? min(count, Self.spread) : 1
    for part in 0..<parts {
      let due = parts > 1 ? due.first + (due.last - due.first) * Int64(part) / Int64(parts - 1) : due.first
      let own = pauses.share(from: due, to: now)
      let times = count * (part + 1) / parts - count * part / parts
      latency.sendLagUs.record(Int((now - due) / 1_000), times: times)
      latency.sendLagOwnUs?.record(Int(own / 1_000), times: times)
      latency.sendLagGatewayUs?.record(Int((now - due - own) / 1_000), times: times)
    }
  }

  /// A timer of the loop fired late by this many nanoseconds: notifications that became due meanwhile waited for a part
  /// of it, so a delay counts once for each of its milliseconds, with the rest of the delay at that time.
  mutating func noteLoopLag(_ late: Int64) {
    var left = late
    repeat {
      loopLag.record(Int(left / 1_000))
      left -= LoopRunner.tick
    } while left > 0
  }
}
