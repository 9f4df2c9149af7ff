import Measurement

/// Send lag: the time from a notification's due time until it was written or abandoned.
extension LoopRunner {
  /// Records the lag of a piece that is written now.
  func noteLag(_ piece: SentLog.Piece, _ due: DueTimes, at now: Int64) {
    if piece.attempt > 0 { tally.sendings.resent += piece.count }
    // Collected during the schedule, and written after it: the lag of a phase covers all notifications due in it.
    let isLeftOver = books.phase == .drain && piece.attempt == 0 && machine.isDueInSchedule(due)
    noteLag(piece.count, due, of: isLeftOver ? machine.lastScheduled : books.phase, at: now)
  }

  /// Records the lag of notifications that will never be sent.
  func noteNeverSent(_ count: Int, _ due: DueTimes, at now: Int64) {
    noteLag(count, due, of: machine.phaseOfDue, at: now)
  }

  /// Records the lag of pieces that were collected and never written.
  func noteNeverSent(_ pieces: some Sequence<SentLog.Piece>) {
    let now = clock()
    for piece in pieces {
      noteLag(piece.count, machine.due(piece.count, of: piece, now), of: machine.lastScheduled, at: now)
    }
  }

  private func noteLag(_ count: Int, _ due: DueTimes, of phase: RunPhase, at now: Int64) {
    books.noteLag(count, due, of: phase, at: now)
  }
}

extension LoopBooks {
  mutating func noteLag(_ count: Int, _ due: DueTimes, of phase: RunPhase, at now: Int64) {
    let share = pauses
    book(phase) { $0.measurements.noteLag(count, due, at: now, share) }
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
