import Synchronization

/// Captures that are read as one: the files of a ring, or those of several capture points.
///
/// They are read in the order of their first packets' times, those of equal times in the natural order of their names.
/// Where files overlap in time their packets are merged by it. Flows, TLS, sessions and numbers continue from file to file.
public struct Recording: Sendable {
  /// In the order in which they are read, when `sort()` was called.
  public private(set) var files: [RecordedFile] = []
  /// The number of the first file in packets' numbers (`PacketNumber`); 0 when they are to have none.
  public var firstNumber = 0

  public init() {}

  /// One file, of which nothing is read ahead.
  public init(_ file: consuming CaptureFile) { files = [RecordedFile(file)] }

  /// Adds a file.
  ///
  /// With the second one all of them are read as far as their first packet; those that can be opened again are closed
  /// then, so that their number is not limited.
  public mutating func add(_ file: consuming CaptureFile, options: CaptureOptions) {
    files.append(RecordedFile(file))
    if files.count < 2 { return }
    if files.count == 2 { files[0].lookAhead() }
    files[files.count - 1].lookAhead()
  }

  /// Puts the files into the order in which they are read.
  public mutating func sort() {
    files.sort {
      if $0.firstTime != $1.firstTime { return $0.firstTime < $1.firstTime }
      return NaturalOrder.precedes($0.path, $1.path)
    }
  }

  /// Bytes of all files on disk; `nil` with a pipe among them.
  public var size: Int? {
    files.reduce(0 as Int?) { sum, file in sum.flatMap { sum in file.size.map { sum + $0 } } }
  }
}

/// A file of a recording, before it is read.
public final class RecordedFile: Sendable {
  private struct State: ~Copyable {
    var firstTime = Timestamp.none
    /// `nil` when it was closed meanwhile.
    var file: CaptureFile?
  }

  /// The path that it was opened by; `-` is standard input.
  public let path: String
  public let format: CaptureFormat
  /// Bytes on disk, `nil` for a pipe.
  public let size: Int?
  /// Of the first packet; not known without packets, and without times.
  public var firstTime: Timestamp { state.withLock { $0.firstTime } }
  /// Link types that its header tells.
  public let linkTypes: [LinkType]
  private let state: Mutex<State>

  init(_ file: consuming CaptureFile) {
    path = file.path
    format = file.format
    size = file.size
    linkTypes = file.linkTypes
    state = Mutex(State(file: consume file))
  }

  /// It can be opened again, and gives the same.
  private var canBeOpenedAgain: Bool { path != "-" && size != nil }

  fileprivate func lookAhead() {
    state.withLock { state in
      guard var file = state.file.take() else { return }
      // Errors are reported when it is read.
      _ = try? file.holdNext()
      state.firstTime = file.held?.packet.time ?? .none
      if !canBeOpenedAgain { state.file = consume file }
    }
  }

  /// Gives the file away, opened.
  func open(_ options: CaptureOptions) throws(CaptureError) -> CaptureFile {
    if let file = state.withLock({ $0.file.take() }) { return file }
    guard let file = try CaptureInput.openCapture(path, options: options) else {
      throw CaptureError(.notACapture, "is no capture any more: it has changed since it was opened first")
    }
    return file
  }
}

/// The order that people expect of names with numbers in them: `cap2` before `cap10`.
package enum NaturalOrder {
  package static func precedes(_ a: String, _ b: String) -> Bool {
    let (a, b) = (Array(a.utf8), Array(b.utf8))
    var (i, j) = (0, 0)
    while i < a.count, j < b.count {
      guard isDigit(a[i]), isDigit(b[j]) else {
        if a[i] != b[j] { return a[i] < b[j] }
        (i, j) = (i + 1, j + 1)
        continue
      }
      let (x, y) = (number(a, &i), number(b, &j))
      if x.count != y.count { return x.count < y.count }
      if let place = x.indices.first(where: { x[$0] != y[$0 - x.startIndex + y.startIndex] }) {
        return x[place] < y[place - x.startIndex + y.startIndex]
      }
    }
    if (i < a.count) != (j < b.count) { return i == a.count }
    // They differ only in leading zeros.
    return a.lexicographicallyPrecedes(b)
  }

  private static func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }

  /// The digits from here on, without leading zeros.
  private static func number(_ text: [UInt8], _ index: inout Int) -> ArraySlice<UInt8> {
    let start = index
    while index < text.count, isDigit(text[index]) { index += 1 }
    return text[start..<index].drop { $0 == UInt8(ascii: "0") }
  }
}
