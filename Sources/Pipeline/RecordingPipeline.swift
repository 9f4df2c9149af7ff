import Analysis
import CommandFiles
import Dissection
import InterfaceCapture
import PacketCapture
import Records
import TLSDecryption

/// The way from recordings to a sink: inputs are opened, decrypted and dissected, and their records selected, redacted
/// and received.
///
/// Commands differ in the sink. One that writes records calls `prepareToWrite(fates:)` first, to learn how to write fates;
/// otherwise the records of a selection are counted.
package struct RecordingPipeline {
  /// Key logs that may grow while an interface is read.
  package struct GrowingKeyLogs {
    package var paths: [String]
    /// Bytes that are read at once.
    package var maximumLength: Int
    package var maximumLines: Int

    package init(paths: [String], maximumLength: Int, maximumLines: Int) {
      (self.paths, self.maximumLength, self.maximumLines) = (paths, maximumLength, maximumLines)
    }
  }

  package private(set) var inputs: [RecordingInput]
  private let options: DissectionOptions
  private let filter: PacketFilter?
  private let observer: any ReadingObserver
  private let readSecrets: () throws -> Secrets
  private var secrets: Secrets?
  /// `nil`: not made yet, since the selection changed.
  private var firstPass: FirstPass?
  /// Connections' records count all records of the connection, not the selected ones alone.
  private var countsAll = false
  /// An end was asked for while standard input was copied.
  private var isCopyCut = false

  /// The interface that is read instead of the inputs.
  package var interface: LiveCapture.Options?
  package var keyLogs = GrowingKeyLogs(paths: [], maximumLength: 0, maximumLines: 0)
  /// Captures given together are unrelated.
  package var isSeparate = false
  /// The folder of the copy of standard input.
  package var temporaryFolder = "/tmp"
  package var selection = RecordSelection() {
    didSet { firstPass = nil }
  }
  /// `nil`: records are not redacted.
  package var redaction: Redaction?
  /// The number of selected records after which reading ends; `nil`: none.
  package var recordLimit: Int?
  /// Ranges of fates that are kept, and as many of other facts.
  package var maximumRanges = FateIndex.usualMaximumRanges
  /// Called with the secrets that decrypted something, as lines of a key log.
  package var onUse: ((String) -> Void)?

  /// - Parameter secrets: reads the secrets that decrypt connections; called once, right before inputs are opened.
  package init(
    _ inputs: [RecordingInput], _ options: DissectionOptions, filter: PacketFilter?,
    secrets: @escaping () throws -> Secrets, observer: any ReadingObserver
  ) {
    (self.inputs, self.options, self.filter, self.observer) = (inputs, options, filter, observer)
    readSecrets = secrets
  }

  // MARK: before the first record

  /// Reads the inputs a first time if notifications' records are to have fates, or the selection needs it.
  ///
  /// - Parameter fates: `nil`: fates are in notifications' records where inputs can be read twice; `true`: also of
  ///   standard input, which is copied first; `false`: fates are not written.
  /// - Returns: how the sink is to write fates.
  /// - Throws: a `ReadingRefusal`; a `FileFailure` if standard input cannot be copied; an `InterfaceCaptureFailure`; what
  ///   `secrets` throws.
  package mutating func prepareToWrite(fates: Bool?) throws -> FateNotation {
    countsAll = true
    if interface != nil, fates == true { throw ReadingRefusal.fatesOfInterface }
    if fates == true { try keepStandardInput(for: .fates) }
    return try makeFirstPass(fates: fates).notation
  }

  private mutating func makeFirstPass(fates: Bool?) throws -> FirstPass {
    if interface != nil, selection.needsFacts { throw ReadingRefusal.selectionOfInterface }
    let isRepeatable = interface == nil && inputs.allSatisfy(\.isRepeatable)
    var first = FirstPass(selection, fates == false ? .omitted : .ranges)
    if selection.needsFacts && !isRepeatable { throw ReadingRefusal.selectionOfPipe }
    if isRepeatable, fates != false || selection.needsFacts {
      let facts = SharedSink(RecordingFacts(for: selection, maximumRanges: maximumRanges))
      let reading = try pass(into: facts, isQuiet: true)
      first = FirstPass(facts.sink, reading.summary, writesFates: fates != false, isRedacted: redaction != nil)
    }
    firstPass = first
    return first
  }

  /// The first pass of a reading that counts: if the selection needs facts, standard input is copied first.
  private mutating func firstPassOfCounting() throws -> FirstPass {
    if interface == nil, selection.needsFacts { try keepStandardInput(for: .selection) }
    return try makeFirstPass(fates: false)
  }

  /// Copies standard input to an unnamed file, so that all inputs can be read more than once.
  ///
  /// A request to stop ends the copying: the copied part is the input.
  ///
  /// - Returns: `true` if the copying was ended by a request.
  /// - Throws: a `FileFailure`, or `ReadingRefusal.notRepeatable` of another input that is a pipe.
  @discardableResult
  package mutating func keepStandardInput(for need: ReadingRefusal.Need) throws -> Bool {
    if inputs.contains(where: { $0.path == "-" }) {
      if !StandardInput.isWholeFile {
        try StandardInput.keep(in: temporaryFolder) { observer.isStopRequested }
      }
      for index in inputs.indices { inputs[index].noteKept() }
    }
    for input in inputs where !input.isRepeatable { throw ReadingRefusal.notRepeatable(input, for: need) }
    isCopyCut = observer.takeStopRequest()
    return isCopyCut
  }

  // MARK: reading

  /// Reads the inputs until they end, an end is asked for, or the sink wants no more.
  ///
  /// Inputs that cannot be read are reported to the observer; the other inputs are read. If none could be, the sink has
  /// received nothing.
  ///
  /// - Parameters:
  ///   - isQuiet: another reading follows, which reports problems of the inputs.
  ///   - onProgress: called after every batch of packets, with the sink so far, the totals of what was read, and those of
  ///     what was selected of it.
  /// - Returns: the sink with what it has received, and how the reading went.
  /// - Throws: an `InterfaceCaptureFailure`, what `secrets` throws; if the selection needs a first pass that was not made,
  ///   what `prepareToWrite(fates:)` throws.
  package mutating func read<Sink: RecordSink>(
    into sink: Sink, isQuiet: Bool = false,
    onProgress: ((_ sink: Sink, _ summary: SummaryRecord, _ selected: SummaryRecord) -> Void)? = nil
  ) throws -> (sink: Sink, reading: ReadingOutcome) {
    let firstPass = try firstPass ?? firstPassOfCounting()
    let received = SharedSink(sink)
    let redacted: any RecordSink =
      redaction.map {
        RedactedRecords(received, $0, limits: options.http2, memory: options.maximumMemory / 8)
      } ?? received
    var reading: ReadingOutcome
    if selection.isEmpty && recordLimit == nil {
      reading = try pass(
        into: redacted, isQuiet: isQuiet,
        onProgress: onProgress.map { body in { summary in body(received.sink, summary, summary) } })
      if !isQuiet { firstPass.report(after: reading.summary, isCut: false, to: observer) }
    } else {
      let selected = SharedSink(
        SelectedRecords(
          redacted, selection, facts: firstPass.facts, countsSelected: !countsAll, limit: recordLimit ?? .max,
          maximumRanges: maximumRanges))
      reading = try pass(
        into: selected, isQuiet: isQuiet,
        onProgress: onProgress.map { body in { summary in body(received.sink, summary, selected.sink.summary) } })
      if !isQuiet { firstPass.report(after: reading.summary, isCut: selected.sink.isCut, to: observer) }
    }
    if reading.hasRead { received.pause() }
    reading.isCopyCut = isCopyCut
    return (received.sink, reading)
  }

  /// Reads the inputs once into a sink.
  private mutating func pass(
    into sink: any RecordSink, isQuiet: Bool, onProgress: ((SummaryRecord) -> Void)? = nil
  ) throws -> ReadingOutcome {
    // Created before the key logs are read, so that no line is missed.
    let follower =
      interface == nil || keyLogs.paths.isEmpty
      ? nil
      : KeyLogFollower(
        keyLogs.paths, maximumLength: keyLogs.maximumLength, maximumLines: keyLogs.maximumLines)
    let known = try secrets ?? readSecrets()
    secrets = known
    let unused = known.unused()
    let live = try interface.map(LiveCapture.init)
    let opened = OpenedInputs(
      inputs, live: live, separately: isSeparate, options: options.capture, observer: observer, isQuiet: isQuiet)
    var pass = InputPass(
      opened, live, into: Dissection(into: sink, options: options, filter: filter, secrets: unused), unused,
      observer: observer, isQuiet: isQuiet)
    if !isQuiet { pass.onUse = onUse }
    if let follower { pass.moreSecrets = follower.next }
    pass.onProgress = onProgress
    return pass.read()
  }
}
