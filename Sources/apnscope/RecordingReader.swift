import ArgumentParser
import Dissection
import PacketCapture
import TLSDecryption

/// Reads all inputs into a sink, as both reading commands do.
struct RecordingReader<Sink: RecordSink> {
  /// The sink with everything it has taken.
  var sink: Sink
  let summary: SummaryRecord
  /// Something was wrong with a file as a file.
  private(set) var hasWarnings = false
  /// An input could be read, at least its beginning; else the sink has taken nothing.
  let hasRead: Bool
  /// The first failure's code, when an input could not be read.
  private(set) var failure: ExitCode?

  /// Reads until the inputs end, Ctrl-C is pressed, or the sink wants no more.
  ///
  /// An input that cannot be read is complained about, and the others are read all the same.
  ///
  /// - Parameters:
  ///   - secrets: those that the options name, if they have been read already.
  ///   - isQuiet: a second pass follows, which reports problems of the inputs.
  ///   - onUse: takes the secrets that opened something, as lines of a key log.
  init(
    _ inputs: [String], _ options: DecodingOptions, into sink: Sink, secrets known: Secrets? = nil,
    isQuiet: Bool = false, onUse: ((String) -> Void)? = nil
  ) throws {
    let filter: PacketFilter?
    do {
      filter = try options.filter.map { try PacketFilter($0, snapLength: options.limits.maxPacketLength.bytes) }
    } catch let error as CaptureError {
      throw ValidationError(error.message)
    }
    let dissectionOptions = options.dissectionOptions
    let secrets = try known?.unused() ?? options.secrets.read(options.limits)
    secrets.onUse = onUse
    var dissection = Dissection(into: sink, options: dissectionOptions, filter: filter, secrets: secrets)
    for path in inputs where dissection.sink.isOpen && !Interrupt.isRequested {
      let name = path == "-" ? "standard input" : path
      var progress = Progress()
      defer { progress.end() }
      do {
        let input = try CaptureInput.open(RepeatableInput.path(of: path), options: dissectionOptions.capture)
        let outcome = try dissection.read(input, source: ArgumentBytes.named(path)) { state in
          progress.show(state)
          return !Interrupt.isRequested
        }
        progress.end()
        for warning in outcome.warnings where !isQuiet { complain("\(name): \(warning)") }
        hasWarnings = hasWarnings || !outcome.warnings.isEmpty
      } catch let error as CaptureError {
        progress.end()
        // Ctrl-C before the first byte of a pipe came looks like an empty input.
        if Interrupt.isRequested { break }
        failure = failure ?? ExitStatus.code(for: error)
        if isQuiet { continue }
        let other = error.kind == .notACapture ? FileKind(ofFile: path, beginning: error.beginning) : nil
        complain("\(name): \(other?.advice ?? error.message)")
      }
    }
    hasRead = dissection.hasBegun
    // There is nothing to sum up when nothing could be read.
    if hasRead { dissection.finish() }
    summary = dissection.summary
    self.sink = dissection.sink
  }

  /// The exit status, after all output was written.
  func exitCode(strict: Bool) -> ExitCode {
    if Interrupt.isRequested { return ExitStatus.interrupted }
    if let failure { return failure }
    guard strict else { return .success }
    if !summary.hasRead { complain("no notifications or feedback found") }
    return summary.isDamaged || hasWarnings || !summary.hasRead ? ExitStatus.damaged : .success
  }
}
