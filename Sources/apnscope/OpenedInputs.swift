import ArgumentParser
import Bytes
import CommandFiles
import FoundationEssentials
import Glibc
import PacketCapture

/// The inputs of a command that reads recordings, each opened before the first is read: captures given together are one
/// recording, whose files follow one another by time.
struct OpenedInputs {
  /// One input, or several that form one recording.
  enum Item {
    case recording(Recording)
    case dump(OpenedDump)
  }

  /// A class, because an input cannot be in an array.
  final class OpenedDump {
    let path: String
    private var input: CaptureInput?

    init(_ path: String, _ input: consuming CaptureInput) {
      self.path = path
      self.input = consume input
    }

    /// Gives the input away, once.
    func take() -> CaptureInput? { input.take() }
  }

  /// In reading order; all captures together are at the first capture's position.
  private(set) var items: [Item] = []
  private(set) var files = 0
  /// The first failure's code, when an input could not be opened.
  private(set) var failure: ExitCode?
  /// The index of the item with all captures.
  private var joint: Int?
  private let separately: Bool
  private let isQuiet: Bool
  private let options: CaptureOptions

  /// Opens all inputs, until Ctrl-C is pressed. Reports inputs that cannot be opened.
  ///
  /// - Parameters:
  ///   - separately: each capture is a separate recording.
  ///   - isQuiet: a second pass follows, which reports problems of the inputs.
  init(
    _ paths: [String], live: LiveCapture? = nil, separately: Bool, isQuiet: Bool = false, options: CaptureOptions
  ) {
    self.separately = separately
    self.isQuiet = isQuiet
    self.options = options
    if let live {
      add(interface: live)
      return
    }
    for path in paths where !Interrupt.isRequested {
      if path != "-", Paths.isDirectory(path) { add(folder: path) } else { add(file: path) }
    }
    for case .recording(var recording) in items {
      guard let joint else { break }
      recording.sort()
      items[joint] = .recording(recording)
    }
  }

  /// If nothing comes, the capturing program's end shows the reason.
  private mutating func add(interface live: LiveCapture) {
    let file = try? CaptureInput.openCapture(live.path, options: options)
    if let file { add(file) }
  }

  /// Keeps the first exit code.
  mutating func fail(_ code: ExitCode) { failure = failure ?? code }

  private mutating func add(file path: String) {
    do throws(CaptureError) {
      switch try CaptureInput.open(RepeatableInput.path(of: path), options: options) {
      case .packets(let file):
        printNotes(file.notes, path)
        add(file)
      case .dump(let dump):
        printNotes(dump.notes, path)
        files += 1
        items.append(.dump(OpenedDump(path, .dump(dump))))
      }
    } catch {
      // Ctrl-C before the first byte of a pipe came looks like an empty input.
      if !Interrupt.isRequested { fail(error, path) }
    }
  }

  private mutating func add(_ file: consuming CaptureFile) {
    files += 1
    guard !separately, let joint, case .recording(var recording) = items[joint] else {
      if !separately { joint = items.count }
      return items.append(.recording(Recording(file)))
    }
    // Avoids a copy of the recording.
    items[joint] = .recording(Recording())
    recording.add(file, options: options)
    items[joint] = .recording(recording)
  }

  /// Reports an error of an input, and keeps the first exit code.
  mutating func fail(_ error: CaptureError, _ path: String) {
    failure = failure ?? ExitStatus.code(for: error)
    if isQuiet { return }
    let other = error.kind == .notACapture ? FileKind(ofFile: path, beginning: error.beginning) : nil
    complain("\(Self.name(of: path)): \(other?.advice ?? error.message)")
  }

  /// Reports how an input was read.
  private func printNotes(_ notes: [String], _ path: String) {
    guard !isQuiet else { return }
    for note in notes { complain("\(Self.name(of: path)): \(note)") }
  }

  static func name(of path: String) -> String {
    let name = RepeatableInput.name(of: path)
    return name == "-" ? "standard input" : name
  }

  // MARK: folders

  /// Files left out of a folder that are named in a message.
  private static let named = 5

  /// Adds the captures of a folder, not of folders in it. Captures are recognised by their first bytes.
  private mutating func add(folder: String) {
    let names: [String]
    do {
      names = try FileManager.default.contentsOfDirectory(atPath: folder)
    } catch {
      return fail(CaptureError(.cannotOpen, "the folder cannot be read"), folder)
    }
    var others: [String] = []
    var captures = 0
    for name in names.filter({ !$0.hasPrefix(".") }).sorted(by: NaturalOrder.precedes) where !Interrupt.isRequested {
      let path = Paths.path(of: name, in: folder)
      RedactedArguments.hide(name)
      var status = stat()
      // Opening a pipe would wait for a writer.
      guard unsafe stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { continue }
      do throws(CaptureError) {
        guard let file = try CaptureInput.openCapture(path, options: options) else {
          others.append(name)
          continue
        }
        captures += 1
        printNotes(file.notes, path)
        add(file)
      } catch {
        captures += 1
        fail(error, path)
      }
    }
    if captures == 0 {
      return fail(CaptureError(.notACapture, "no file in this folder is a packet capture"), folder)
    }
    guard !others.isEmpty, !isQuiet else { return }
    let more = others.count > Self.named ? " and \(others.count - Self.named) more" : ""
    let list = others.prefix(Self.named).joined(separator: ", ")
    complain("\(folder): left out, because they are no packet captures: \(list)\(more)")
  }
}
