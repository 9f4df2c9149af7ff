import Analysis
import ArgumentParser
import CommandFiles
import Dissection
import Glibc
import InterfaceCapture
import PacketCapture
import Pipeline
import Records

/// The person at the terminal: messages and progress go to standard error, and Ctrl-C ends a reading.
final class TerminalObserver: ReadingObserver {
  private let isQuiet: Bool
  private var progress: Progress?

  /// - Parameter isQuiet: whether no progress is shown.
  init(isQuiet: Bool) { self.isQuiet = isQuiet }

  var isStopRequested: Bool { Interrupt.isRequested }
  func takeStopRequest() -> Bool { Interrupt.take() }

  func receive(_ notice: ReadingNotice) {
    if case .found(let name) = notice { RedactedArguments.hide(name) }
    if let text = notice.text { complain(text) }
  }

  func show(_ state: DissectionProgress) {
    guard !isQuiet else { return }
    var current = progress ?? Progress()
    current.show(state)
    progress = current
  }

  func endProgress() {
    progress?.end()
    progress = nil
  }
}

extension RecordingInput {
  /// - Parameter argument: an input as typed.
  init(argument: String) { self.init(path: argument, name: ArgumentBytes.named(argument)) }
}

extension DecodingOptions {
  /// The pipeline from inputs to a sink.
  ///
  /// - Parameters:
  ///   - live: the interface that is read instead, if one is given.
  ///   - chosen: the records that the sink receives.
  func pipeline(
    _ inputs: [String], live: LiveOptions? = nil, _ chosen: RecordSelection = RecordSelection(),
    _ redaction: Redaction? = nil
  ) throws -> RecordingPipeline {
    let filter: PacketFilter?
    do {
      filter = try self.filter.map { try PacketFilter($0, snapLength: limits.maxPacketLength.bytes) }
    } catch let error as CaptureError {
      throw ValidationError(error.message)
    }
    var pipeline = RecordingPipeline(
      inputs.map(RecordingInput.init(argument:)), dissectionOptions, filter: filter,
      secrets: { try secrets.read(limits, mayGrow: live?.interface != nil) },
      observer: TerminalObserver(isQuiet: selection.progress.quiet))
    pipeline.interface = live?.interface.map { interface in
      LiveCapture.Options(
        interface: interface, filter: self.filter, ring: live?.ring, maximumBlockLength: limits.maxBlockLength.bytes,
        endingSignals: StopSignals.numbers
      ) { complain("\($0); packets are no longer kept (--keep), but still decoded") }
    }
    pipeline.keyLogs = RecordingPipeline.GrowingKeyLogs(
      paths: secrets.keys, maximumLength: limits.maxSecretsLength.bytes, maximumLines: limits.maxKeyLogLines)
    pipeline.isSeparate = selection.separate
    pipeline.temporaryFolder = TemporaryFiles.folder
    pipeline.maximumRanges = limits.maxFateRanges
    pipeline.selection = chosen
    pipeline.redaction = redaction
    return pipeline
  }
}

/// Where temporary files are.
enum TemporaryFiles {
  static var folder: String {
    let folder = unsafe getenv("TMPDIR").map { unsafe String(cString: $0) } ?? ""
    return folder.isEmpty ? "/tmp" : folder
  }
}
