import CommandFiles
import FoundationEssentials
import Glibc
import InterfaceCapture
import PacketCapture

/// The inputs of a reading, each opened before the first is read: captures given together are one recording, whose files
/// follow one another by time.
struct OpenedInputs {
  /// One input, or several that form one recording.
  enum Item {
    /// The inputs are those of the recording's files, in order.
    case recording(Recording)
    case dump(OpenedDump)
  }

  /// A class, because an input cannot be in an array.
  final class OpenedDump {
    let source: RecordingInput
    private var input: CaptureInput?

    init(_ source: RecordingInput, _ input: consuming CaptureInput) {
      self.source = source
      self.input = consume input
    }

    /// Gives the input away, once.
    func take() -> CaptureInput? { input.take() }
  }

  /// In reading order; all captures together are at the first capture's position.
  private(set) var items: [Item] = []
  private(set) var files = 0
  /// The first failure.
  private(set) var failure: ReadingFailure?
  /// The index of the item with all captures.
  private var joint: Int?
  /// The opened captures by path.
  private var sources: [String: RecordingInput] = [:]
  private let separately: Bool
  private let options: CaptureOptions
  private let observer: any ReadingObserver
  /// Another pass follows, which reports problems of the inputs.
  private let isQuiet: Bool

  /// Opens all inputs, until an end is asked for, and reports those that cannot be opened.
  ///
  /// - Parameters:
  ///   - live: the capture that is read instead, if there is one.
  ///   - separately: each capture is a separate recording.
  init(
    _ inputs: [RecordingInput], live: LiveCapture?, separately: Bool, options: CaptureOptions,
    observer: any ReadingObserver, isQuiet: Bool
  ) {
    (self.separately, self.options, self.observer, self.isQuiet) = (separately, options, observer, isQuiet)
    if let live {
      // If nothing comes, the capturing program's end shows the reason.
      let source = RecordingInput(path: live.path, name: live.interface)
      if let file = try? CaptureInput.openCapture(live.path, options: options) { add(file, from: source) }
      return
    }
    for input in inputs where !observer.isStopRequested {
      if input.path != "-", Paths.isDirectory(input.path) { add(folder: input) } else { add(file: input) }
    }
    for case .recording(var recording) in items {
      guard let joint else { break }
      recording.sort()
      items[joint] = .recording(recording)
    }
  }

  /// The input that a file of a recording is.
  func source(of file: RecordedFile) -> RecordingInput {
    sources[file.path] ?? RecordingInput(path: file.path, name: file.path)
  }

  private mutating func add(file input: RecordingInput) {
    do throws(CaptureError) {
      switch try CaptureInput.open(input.path, options: options) {
      case .packets(let file):
        report(notes: file.notes, of: input)
        add(file, from: input)
      case .dump(let dump):
        report(notes: dump.notes, of: input)
        files += 1
        items.append(.dump(OpenedDump(input, .dump(dump))))
      }
    } catch {
      // Ctrl-C before the first byte of a pipe came looks like an empty input.
      if !observer.isStopRequested { fail(error, of: input) }
    }
  }

  private mutating func add(_ file: consuming CaptureFile, from input: RecordingInput) {
    files += 1
    sources[input.path] = input
    guard !separately, let joint, case .recording(var recording) = items[joint] else {
      if !separately { joint = items.count }
      return items.append(.recording(Recording(file)))
    }
    // Avoids a copy of the recording.
    items[joint] = .recording(Recording())
    recording.add(file, options: options)
    items[joint] = .recording(recording)
  }

  // MARK: reports

  /// Keeps the first failure.
  mutating func fail(_ failure: ReadingFailure) { self.failure = self.failure ?? failure }

  /// Reports a failure of an input, and keeps the first.
  mutating func fail(_ error: CaptureError, of input: RecordingInput) {
    fail(.input(error))
    if !isQuiet { observer.receive(.failure(input, error)) }
  }

  private func report(notes: [String], of input: RecordingInput) {
    guard !isQuiet else { return }
    for note in notes { observer.receive(.interpreted(input, note)) }
  }

  // MARK: folders

  /// Adds the captures of a folder, not of folders in it. Captures are recognised by their first bytes.
  private mutating func add(folder: RecordingInput) {
    let names: [String]
    do {
      names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
    } catch {
      return fail(CaptureError(.cannotOpen, "the folder cannot be read"), of: folder)
    }
    var others: [String] = []
    var captures = 0
    for name in names.filter({ !$0.hasPrefix(".") }).sorted(by: NaturalOrder.precedes)
    where !observer.isStopRequested {
      let input = RecordingInput(
        path: Paths.path(of: name, in: folder.path), name: Paths.path(of: name, in: folder.name))
      observer.receive(.found(name))
      var status = stat()
      // Opening a pipe would wait for a writer.
      guard unsafe stat(input.path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { continue }
      do throws(CaptureError) {
        guard let file = try CaptureInput.openCapture(input.path, options: options) else {
          others.append(name)
          continue
        }
        captures += 1
        report(notes: file.notes, of: input)
        add(file, from: input)
      } catch {
        captures += 1
        fail(error, of: input)
      }
    }
    if captures == 0 {
      return fail(CaptureError(.notACapture, "no file in this folder is a packet capture"), of: folder)
    }
    if !others.isEmpty, !isQuiet { observer.receive(.leftOut(folder: folder, files: others)) }
  }
}
