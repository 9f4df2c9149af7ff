import Dissection
import InterfaceCapture
import PacketCapture
import Records
import TLSDecryption

/// How a reading went.
package struct ReadingOutcome {
  package var summary = SummaryRecord()
  /// Something was wrong with a file as a file.
  package var hasWarnings = false
  /// At least one input could be read, at least its beginning; otherwise the sink has received nothing.
  package var hasRead = false
  /// The first reason why not all inputs were read.
  package var failure: ReadingFailure?
  /// An interface was read.
  package var isLive = false
  /// An end was asked for while standard input was copied; the copied part was read.
  package var isCopyCut = false
}

/// One pass over all inputs, into one sink.
struct InputPass {
  /// Called with the secrets that decrypted something, as lines of a key log.
  var onUse: ((String) -> Void)?
  /// Called for secrets that came since.
  var moreSecrets: (() -> [KeyLog])?
  var onProgress: ((SummaryRecord) -> Void)?
  private let secrets: Secrets
  private let live: LiveCapture?
  private let observer: any ReadingObserver
  private let isQuiet: Bool
  private var opened: OpenedInputs
  private var dissection: Dissection
  private var reading = ReadingOutcome()

  /// - Parameter isQuiet: another pass follows, which reports problems of the inputs.
  init(
    _ opened: OpenedInputs, _ live: LiveCapture?, into dissection: Dissection, _ secrets: Secrets,
    observer: any ReadingObserver, isQuiet: Bool
  ) {
    (self.opened, self.live, self.dissection, self.secrets) = (opened, live, dissection, secrets)
    (self.observer, self.isQuiet) = (observer, isQuiet)
    reading.isLive = live != nil
    self.dissection.numbersFiles = opened.files > 1
  }

  /// Reads the opened inputs, in order.
  mutating func read() -> ReadingOutcome {
    if onUse != nil || live != nil {
      let (onUse, live) = (onUse, live)
      secrets.onUse = { lines in
        onUse?(lines)
        live?.use(secrets: lines)
      }
    }
    dissection.onProgress = onProgress
    if let moreSecrets { dissection.moreSecrets = moreSecrets }
    // A request while an input was opened ends its reading: what came by then is read.
    for item in opened.items
    where dissection.isOpen && (live != nil || !dissection.hasBegun || !observer.isStopRequested) {
      read(item)
    }
    if let live { end(live) }
    reading.failure = opened.failure
    reading.hasRead = dissection.hasBegun
    // Without a readable input there is no summary.
    if reading.hasRead { dissection.finish() }
    reading.summary = dissection.summary
    return reading
  }

  private mutating func read(_ item: OpenedInputs.Item) {
    switch item {
    case .recording(let recording):
      let sources = recording.files.map { opened.source(of: $0) }
      do {
        let outcomes = try dissection.read(recording, sources: sources.map(\.name), proceed: proceed())
        observer.endProgress()
        for (source, outcome) in zip(sources, outcomes) { note(outcome, of: source) }
      } catch {
        observer.endProgress()
        if let first = sources.first { opened.fail(Self.captureError(error), of: first) }
      }
    case .dump(let dump):
      guard let input = dump.take() else { return }
      do {
        let outcome = try dissection.read(input, source: dump.source.name, proceed: proceed())
        observer.endProgress()
        note(outcome, of: dump.source)
      } catch {
        observer.endProgress()
        opened.fail(Self.captureError(error), of: dump.source)
      }
    }
  }

  private static func captureError(_ error: any Error) -> CaptureError {
    error as? CaptureError ?? CaptureError(.readFailed, "\(error)")
  }

  /// Shows how far a reading has come, and whether it goes on.
  private func proceed() -> (DissectionProgress) -> Bool {
    { [observer, live] progress in
      observer.show(progress)
      return live?.proceed(isStopped: observer.isStopRequested) ?? !observer.isStopRequested
    }
  }

  private mutating func note(_ outcome: CaptureOutcome, of input: RecordingInput) {
    if !isQuiet { for warning in outcome.warnings { observer.receive(.warning(input, warning)) } }
    reading.hasWarnings = reading.hasWarnings || !outcome.warnings.isEmpty
    if let failure = outcome.failure { opened.fail(failure, of: input) }
  }

  private mutating func end(_ live: LiveCapture) {
    let ending = live.end(
      isWanted: dissection.isOpen, isStopped: observer.isStopRequested, hasRead: dissection.summary.packets > 0)
    if let loss = ending.loss { dissection.receive(loss) }
    if let failure = ending.failure {
      observer.receive(.interface(failure))
      opened.fail(.interface(failure))
    }
    if ending.hasRingFailed { opened.fail(.ring) }
  }
}
