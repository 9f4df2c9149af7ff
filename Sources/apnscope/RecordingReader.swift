import ArgumentParser
import Dissection
import PacketCapture
import Records
import TLSDecryption

/// Reads all inputs into a sink, as both reading commands do.
struct RecordingReader {
  let summary: SummaryRecord
  /// Something was wrong with a file as a file.
  let hasWarnings: Bool
  /// At least one input could be read, at least its beginning; otherwise the sink has received nothing.
  let hasRead: Bool
  /// The first failure's code, when an input could not be read.
  let failure: ExitCode?
  private let isLive: Bool

  /// Reads until the inputs end, Ctrl-C is pressed, or the sink wants no more.
  ///
  /// Inputs that cannot be read are reported; the other inputs are read.
  ///
  /// - Parameters:
  ///   - live: the interface that is read instead, if one is given.
  ///   - secrets: the secrets that the options name, if they were read before.
  ///   - isQuiet: a second pass follows, which reports problems of the inputs.
  ///   - onUse: called with the secrets that decrypted something, as lines of a key log.
  ///   - onProgress: is called after every batch of packets, and five times a second while none come.
  init(
    _ inputs: [String], _ options: DecodingOptions, live liveOptions: LiveOptions? = nil, into sink: any RecordSink,
    secrets known: Secrets? = nil, isQuiet: Bool = false, onUse: ((String) -> Void)? = nil,
    onProgress: ((SummaryRecord) -> Void)? = nil
  ) throws {
    let filter: PacketFilter?
    do {
      filter = try options.filter.map { try PacketFilter($0, snapLength: options.limits.maxPacketLength.bytes) }
    } catch let error as CaptureError {
      throw ValidationError(error.message)
    }
    let dissectionOptions = options.dissectionOptions
    let interface = liveOptions?.interface
    // Created before the key logs are read, so that no line is missed.
    let follower = interface.map { _ in
      KeyLogFollower(
        options.secrets.keys, maximumLength: options.limits.maxSecretsLength.bytes,
        maximumLines: options.limits.maxKeyLogLines)
    }
    let secrets = try known?.unused() ?? options.secrets.read(options.limits)
    let live = try interface.map {
      try LiveCapture(
        $0, filter: options.filter, ring: liveOptions?.ring, maximumBlockLength: options.limits.maxBlockLength.bytes)
    }
    isLive = live != nil
    if onUse != nil || live != nil {
      secrets.onUse = { lines in
        onUse?(lines)
        live?.use(secrets: lines)
      }
    }
    var opened = OpenedInputs(
      live.map { [$0.path] } ?? inputs, live: live, separately: options.selection.separate, isQuiet: isQuiet,
      options: dissectionOptions.capture)
    var dissection = Dissection(into: sink, options: dissectionOptions, filter: filter, secrets: secrets)
    dissection.numbersFiles = opened.files > 1
    dissection.onProgress = onProgress
    if let follower, !options.secrets.keys.isEmpty { dissection.moreSecrets = follower.next }
    var hasWarnings = false
    func note(_ outcome: CaptureOutcome, _ path: String) {
      for warning in outcome.warnings where !isQuiet { complain("\(OpenedInputs.name(of: path)): \(warning)") }
      hasWarnings = hasWarnings || !outcome.warnings.isEmpty
      if let failure = outcome.failure { opened.fail(failure, path) }
    }
    // Ctrl-C while an input was opened ends its reading: what came by then is read.
    for item in opened.items
    where dissection.isOpen && (live != nil || !dissection.hasBegun || !Interrupt.isRequested) {
      var progress = Progress()
      defer { progress.end() }
      func proceed(_ state: DissectionProgress) -> Bool {
        progress.show(state)
        return live?.proceed() ?? !Interrupt.isRequested
      }
      switch item {
      case .recording(let recording):
        let paths = recording.files.map(\.path)
        do {
          let outcomes = try dissection.read(
            recording,
            sources: interface.map { [$0] } ?? paths.map { ArgumentBytes.named(RepeatableInput.name(of: $0)) },
            proceed: proceed)
          progress.end()
          for (path, outcome) in zip(paths, outcomes) { note(outcome, path) }
        } catch let error as CaptureError {
          progress.end()
          opened.fail(error, paths[0])
        }
      case .dump(let dump):
        guard let input = dump.take() else { break }
        do {
          let outcome = try dissection.read(
            input, source: ArgumentBytes.named(RepeatableInput.name(of: dump.path)), proceed: proceed)
          progress.end()
          note(outcome, dump.path)
        } catch let error as CaptureError {
          progress.end()
          opened.fail(error, dump.path)
        }
      }
    }
    if let live {
      let (failure, loss) = live.end(isWanted: dissection.isOpen, hasRead: dissection.summary.packets > 0)
      if let loss { dissection.receive(loss) }
      if let failure { opened.fail(failure) }
    }
    self.hasWarnings = hasWarnings
    failure = opened.failure
    hasRead = dissection.hasBegun
    // Without a readable input there is no summary.
    if hasRead { dissection.finish() }
    summary = dissection.summary
  }

  /// The exit status, after all output was written.
  func exitCode(strict: Bool) -> ExitCode {
    // Ctrl-C is the normal end of a live capture, whose earlier failures count.
    if Interrupt.isRequested { return isLive ? failure ?? ExitStatus.interrupted : ExitStatus.interrupted }
    if let failure { return failure }
    guard strict else { return .success }
    if !summary.hasRead { complain("no notifications or feedback found") }
    return summary.isDamaged || hasWarnings || !summary.hasRead ? ExitStatus.damaged : .success
  }
}
