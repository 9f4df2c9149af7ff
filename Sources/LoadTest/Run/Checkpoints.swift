import Measurement

/// Books saved during a run, for when its process is killed.
struct Checkpoints {
  /// Nanoseconds between two.
  static let interval: Int64 = 1_000_000_000

  /// The run so far without the current phase.
  var books: LoadOutcome
  let keep: @Sendable (LoadOutcome) -> Void
  /// When the next is due; 0: at once.
  var next: Int64 = 0

  init(_ books: LoadOutcome, _ keep: @escaping @Sendable (LoadOutcome) -> Void) {
    (self.books, self.keep) = (books, keep)
  }
}

extension Recorder {
  /// Passes on the current books when due: copies that share their memory until the run changes them.
  mutating func takeCheckpoint(_ now: Int64) async {
    guard let checkpoints, now >= checkpoints.next else { return }
    let due = checkpoints.next == 0 ? now : checkpoints.next
    self.checkpoints?.next = due + ((now - due) / Checkpoints.interval + 1) * Checkpoints.interval
    var books = checkpoints.books
    let used = ProcessStatus.processor()
    var ongoing = LoadOutcome.Phase(phase, seconds: Double(max(0, now - phaseBegan)) / 1e9)
    ongoing.end = now
    ongoing.cpu = used.user + used.system - phaseProcessor.user - phaseProcessor.system
    books.phases.append(ongoing)
    await settle(&books)
    books.series = series
    books.feedback = feedback?.books
    books.processor = used
    books.maximumMemory = ProcessStatus.maximumMemory()
    checkpoints.keep(books)
  }
}

extension LoadOutcome {
  /// The result of a run that is not over: of a run that was lost, unless a later one takes its place.
  ///
  /// The result has no timeline, and the rates so far.
  ///
  /// - Parameter environment: the environment of this process.
  package func lostResult(_ environment: Environment) -> RunResult { unfinishedResult(environment, goesOn: false) }

  /// The result so far of a run that goes on; otherwise as `lostResult`.
  package func ongoingResult(_ environment: Environment) -> RunResult { unfinishedResult(environment, goesOn: true) }

  private func unfinishedResult(_ environment: Environment, goesOn: Bool) -> RunResult {
    var result = result(environment)
    if let phase = phases.last { result.markLost(in: phase.phase, afterS: phase.seconds, goesOn: goesOn) }
    return result
  }
}
