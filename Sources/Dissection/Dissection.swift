import BinaryProtocol
import Bytes
import PacketCapture
import Records
import TLSDecryption

/// The progress of a dissection through its present input.
public struct DissectionProgress: Sendable {
  /// Bytes read from the input so far.
  public var bytesRead: Int
  /// Bytes of the input in all; `nil` for pipes.
  public var size: Int?
  /// Packets read from the input so far.
  public var packets: Int

  package init(bytesRead: Int, size: Int?, packets: Int) {
    (self.bytesRead, self.size, self.packets) = (bytesRead, size, packets)
  }
}

/// Reads recordings one after the other into one sink.
///
/// Connections are numbered across all recordings; packets are numbered per file.
public struct Dissection {
  private let options: DissectionOptions
  private let filter: PacketFilter?
  private var dissector: Dissector
  /// `nil`: one thread dissects everything.
  private var parallel: ParallelReading?
  /// Whether records have the number of the file, from 1 in the order in which files are read; to be set before the
  /// first `read`.
  public var numbersFiles = false
  /// Returns the secrets that were found since the last call, while a capture is read; if set, connections wait for
  /// their secrets.
  public var moreSecrets: (() -> [KeyLog])?
  /// Called after every batch of packets, and five times a second while none come, with the totals so far.
  public var onProgress: ((SummaryRecord) -> Void)?
  /// Packets that captures dropped.
  private var losses = LossTally()
  /// Files that have been read.
  private var files = 0
  /// Whether at least one input could be read, so that the sink has received a `capture` record.
  public private(set) var hasBegun = false

  /// Begins a dissection without reading.
  ///
  /// - Parameters:
  ///   - sink: receives all records.
  ///   - options: ports, limits and threads.
  ///   - filter: selects packets; `nil`: all.
  ///   - secrets: decrypt TLS connections; secrets found in captures are added.
  public init(
    into sink: any RecordSink, options: DissectionOptions, filter: PacketFilter? = nil, secrets: Secrets = Secrets()
  ) {
    let options = options.divided
    self.options = options
    self.filter = filter
    dissector = Dissector(sink: sink, options: options, secrets: secrets)
    if options.threads.maximum > 1 { parallel = ParallelReading(dissector) }
  }

  /// Events of the lanes' connections: how many the lanes read, and how many they left to the dissector.
  var readAhead: (ahead: Int, left: Int) { parallel?.totals ?? (0, 0) }

  /// The totals so far.
  public var summary: SummaryRecord { dissector.output.summary }
  /// Whether the sink wants further records.
  public var isOpen: Bool { dissector.output.sink.isOpen }

  /// Dissects one input to its end, or until `proceed` returns `false`.
  ///
  /// Damage to the file ends the reading and is a warning in the outcome. Throws if the input cannot be read at all, or
  /// the filter does not apply to its packets.
  ///
  /// - Parameters:
  ///   - input: a capture or a dump, which is consumed.
  ///   - source: the name of the input in records.
  ///   - proceed: called after every block, and five times a second while there is no input.
  public mutating func read(
    _ input: consuming CaptureInput, source: String, proceed: (DissectionProgress) -> Bool
  ) throws -> CaptureOutcome {
    switch consume input {
    case .packets(let file):
      let outcomes = try read(Recording(file), sources: [source], proceed: proceed)
      return outcomes[0]
    case .dump(let dump):
      let outcome = try read(dump, source, proceed)
      dissector.output.sink.receive(outcome)
      return outcome
    }
  }

  /// Dissects the files of a recording as one: flows, TLS, sessions and numbers continue from file to file.
  ///
  /// - Parameters:
  ///   - recording: the files.
  ///   - sources: the names of the files in records; a file without one has its path.
  ///   - proceed: as above.
  /// - Returns: the outcome of each file, in the order of the recording. A file that could not be read has a `failure`,
  ///   which is thrown if there is only one file.
  public mutating func read(
    _ recording: Recording, sources: [String], proceed: (DissectionProgress) -> Bool
  ) throws -> [CaptureOutcome] {
    var recording = recording
    var pass = begin(&recording, sources)
    let secrets = dissector.secrets
    defer {
      secrets.late = nil
      secrets.mayGrow = false
    }
    let ending: Result<CaptureFileEnd?, any Error>
    do {
      let end = try makeReader(recording, pass).forEachBatch(ahead: pass.ahead) {
        wait(&pass)
        return dissector.output.sink.isOpen && proceed(pass.progress)
      } _: { batches in
        take(batches, &pass)
        pass.isEnding = pass.isEnding || !(dissector.output.sink.isOpen && proceed(pass.progress))
        // What lanes have read is read to its end.
        return !pass.isEnding || parallel?.waiting ?? 0 > 0
      }
      ending = .success(pass.isEnding ? nil : end)
    } catch {
      ending = .failure(error)
    }
    return try end(&pass, ending)
  }

  /// Passes the summary to the sink, as the last record. To be called once, after all inputs.
  public mutating func finish() { dissector.output.sink.receive(dissector.output.summary) }

  // MARK: captures

  /// Batches that lanes read at a time.
  private static var batchesAhead: Int { 3 }

  private mutating func begin(_ recording: inout Recording, _ sources: [String]) -> RecordingPass {
    let firstNumber = files + 1
    files += recording.files.count
    if numbersFiles { recording.firstNumber = firstNumber }
    let outcomes = recording.files.enumerated().map { index, file in
      CaptureOutcome(
        file: numbersFiles ? firstNumber + index : nil,
        source: sources.indices.contains(index) ? sources[index] : file.path,
        format: file.format, linkTypes: file.linkTypes, size: file.size)
    }
    let late = LateSecrets(recording, options)
    if late.mayHelp { dissector.secrets.late = { late.read() } }
    // A pipe cannot be read twice; there a connection waits for its secret, as far as the limits allow.
    dissector.secrets.mayGrow = late.mayCome || moreSecrets != nil
    // Lanes do nothing while the dissector waits for secrets that come at any time.
    let ahead = parallel != nil && moreSecrets == nil ? Self.batchesAhead : 1
    return RecordingPass(recording, outcomes, firstNumber: firstNumber, ahead: ahead, late)
  }

  private mutating func makeReader(_ recording: Recording, _ pass: RecordingPass) -> StreamReader {
    // On a pipe's thread a lane would wait for packets.
    let isShared = pass.ahead > 1 && recording.size != nil && parallel?.sharesReadingThread == true
    let queue = isShared ? StreamReader.makeQueue() : nil
    parallel?.readingQueue = queue
    return StreamReader(
      recording, options: options.capture, filter: filter, depth: pass.ahead > 1 ? pass.ahead + 2 : 4, queue: queue)
  }

  /// Nothing has come for a moment.
  private mutating func wait(_ pass: inout RecordingPass) {
    addSecrets()
    if hasBegun { dissector.output.sink.pause() }
    pass.notePause()
    onProgress?(dissector.output.summary)
  }

  /// Takes the first of the batches; lanes may read the others ahead.
  private mutating func take(_ batches: [EventBatch], _ pass: inout RecordingPass) {
    guard let batch = batches.first else { return }
    for part in batch.files {
      pass.count(part)
      if part.packets > 0 { announce(before: part.file + 1, &pass) }
    }
    addSecrets()
    if batch.files.count > 1 { pass.late.isOutOfOrder = true }
    if !batch.secrets.isEmpty {
      for keyLog in pass.late.keyLogs(of: batch.secrets) { dissector.secrets.add(keyLog) }
      if !pass.late.hasRead { dissector.retryTLS() }
    }
    dissector.output.summary.packets += batch.matchingPackets
    if pass.ahead > 1 {
      parallel?.readFirst(of: batches, isEnding: pass.isEnding, into: &dissector)
    } else {
      dissector.consume(batch)
    }
    dissector.memory.add(batch.growth)
    if dissector.memory.isDue, parallel?.waiting ?? 0 == 0, let position = batch.lastPosition {
      dissector.limitMemory(at: position)
    }
    pass.note(batch.unread)
    for part in batch.files {
      guard let end = part.end else { continue }
      announce(before: part.file + 1, &pass)
      pass.note(end, ofFile: part.file)
      for loss in end.losses { receive(CaptureLossRecord(file: pass.outcomes[part.file].file, loss: loss)) }
    }
    pass.progress.bytesRead = batch.bytesRead
    if pass.isPauseDue() { dissector.output.sink.pause() }
    onProgress?(dissector.output.summary)
  }

  private mutating func end(
    _ pass: inout RecordingPass, _ ending: Result<CaptureFileEnd?, any Error>
  ) throws -> [CaptureOutcome] {
    switch ending {
    case .success(.some): announce(before: pass.outcomes.count, &pass)
    // If reading was ended before, files that were not begun are left out.
    case .success(nil): announce(before: max(pass.announced, 1), &pass)
    case .failure: break
    }
    dissector.endAll()
    finish(&pass.outcomes[..<pass.announced], pass.matching)
    _ = try ending.get()
    return pass.outcomes
  }

  private mutating func announce(before end: Int, _ pass: inout RecordingPass) {
    while pass.announced < end {
      announce(pass.outcomes[pass.announced])
      pass.announced += 1
    }
  }

  /// Adds the secrets that came since the last time.
  private mutating func addSecrets() {
    guard let more = moreSecrets?(), !more.isEmpty else { return }
    for keyLog in more { dissector.secrets.add(keyLog) }
    dissector.retryTLS()
  }

  /// Passes the losses that a capturing program reports when it ends to the sink.
  public mutating func receive(_ loss: CaptureLoss) {
    if loss.dropped > 0 { receive(CaptureLossRecord(file: nil, loss: loss)) }
  }

  private mutating func receive(_ record: CaptureLossRecord) {
    dissector.output.summary.droppedPackets += losses.new(record.loss)
    dissector.output.sink.receive(record)
  }

  /// Adds warnings to files that have been read, and passes them to the sink.
  private mutating func finish(_ outcomes: inout ArraySlice<CaptureOutcome>, _ matching: Int) {
    let packets = outcomes.reduce(0) { $0 + $1.packets }
    if let last = outcomes.indices.last, filter != nil && packets > 0 && matching == 0 {
      let whose = outcomes.count > 1 ? "the files'" : "the"
      outcomes[last].warnings.insert("the filter matches none of \(whose) \(packets) packets", at: 0)
    }
    for index in outcomes.indices {
      // Already in order.
      if let window = options.capture.reorderWindow, outcomes[index].longestDelay <= window {
        (outcomes[index].latePackets, outcomes[index].longestDelay) = (0, 0)
      }
      if let warning = Self.warning(outcomes[index]) { outcomes[index].warnings.append(warning) }
      dissector.output.sink.receive(outcomes[index])
    }
    note(outcomes)
  }

  /// Notes unread packets in the summary.
  private mutating func note(_ outcomes: ArraySlice<CaptureOutcome>) {
    let hasConnections = dissector.output.summary.connections > 0
    for outcome in outcomes {
      dissector.output.summary.unreadPackets += outcome.unread.hidingPackets
      let rows = outcome.unread.descriptions(all: !hasConnections)
      for row in rows where dissector.output.summary.unread.count < Self.listedUnread {
        dissector.output.summary.unread.append(outcome.file.map { "file \($0): \(row)" } ?? row)
      }
    }
  }

  private static var listedUnread: Int { 64 }

  /// One warning for all unread blocks, of which a hostile file has thousands.
  private static func warning(_ outcome: CaptureOutcome) -> String? {
    let count = outcome.unread.hidingPackets
    guard count > 0 else { return nil }
    let rows = outcome.unread.descriptions(all: false).joined(separator: "; ")
    return "\(count) of \(outcome.packets) packets \(count == 1 ? "is" : "are") not read: \(rows)"
  }

  private mutating func announce(_ outcome: CaptureOutcome) {
    hasBegun = true
    dissector.output.sink.receive(
      CaptureRecord(file: outcome.file, source: outcome.source, format: outcome.format, linkTypes: outcome.linkTypes))
  }

  // MARK: raw dumps

  private mutating func read(
    _ dump: consuming RawDump, _ source: String, _ proceed: (DissectionProgress) -> Bool
  ) throws -> CaptureOutcome {
    var dump = dump
    let contents: DumpContents
    if let known = options.dumpContents {
      contents = known
    } else {
      contents = try DumpGuess(dump.beginning, of: dump.beginningOfFile, options.limits).contents
    }
    files += 1
    var outcome = CaptureOutcome(
      file: numbersFiles ? files : nil, source: source, format: dump.format, size: dump.size)
    announce(outcome)
    let packet = numbersFiles ? PacketNumber.joining(file: files, packet: 0) : 0
    let connection = dissector.open(0, nil, .none, packet: packet)
    let isFromStart = DumpGuess.http2(dump.beginning) == contents
    dissector.beginDump(connection, contents, startsHTTP2: isFromStart)
    var offset = 0
    let size = dump.size
    let mark = CapturePosition(time: .none, packet: packet)
    try dump.forEachPiece { bytes, bytesRead in
      dissector.count(bytes.byteCount, connection, fromClient: contents.isFromClient)
      switch contents {
      case .gateway: dissector.readGateway(bytes, at: offset, mark, connection)
      case .responses: dissector.readResponses(bytes, at: offset, mark, connection)
      case .feedback: dissector.readFeedback(bytes, at: offset, mark, connection)
      case .http2: dissector.readHTTP2(bytes, at: offset, mark, connection, false)
      case .http2Responses: dissector.readHTTP2(bytes, at: offset, mark, connection, true)
      }
      offset += bytes.byteCount
      return dissector.output.sink.isOpen && proceed(DissectionProgress(bytesRead: bytesRead, size: size, packets: 0))
    }
    dissector.close(connection)
    outcome.warnings = dump.warnings
    return outcome
  }
}
