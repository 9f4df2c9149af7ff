import Synchronization

/// Captures that are read as one: the files of a ring buffer, or those of several capture points.
///
/// The files are read in the order of their first packets; with equal times in the natural order of their names.
/// Packets of files that overlap in time are merged by time. Flows, TLS sessions and packet numbers continue from file
/// to file.
public struct Recording: Sendable {
  /// The files, in reading order after `sort()`.
  public private(set) var files: [RecordedFile] = []
  /// The number of the first file in packet numbers (`PacketNumber`); 0: packet numbers have no file number.
  public var firstNumber = 0

  /// A recording without files.
  public init() {}

  /// A recording of one file, of which no packet is read ahead.
  public init(_ file: consuming CaptureFile) { files = [RecordedFile(file)] }

  /// Adds a file.
  ///
  /// From the second file on, each file is read up to its first packet, for its time. A file that can be opened again
  /// is closed then, so that the number of files is not limited by the number of descriptors.
  public mutating func add(_ file: consuming CaptureFile, options: CaptureOptions) {
    files.append(RecordedFile(file))
    if files.count < 2 { return }
    if files.count == 2 { files[0].lookAhead() }
    files[files.count - 1].lookAhead()
  }

  /// Sorts the files into reading order.
  public mutating func sort() {
    files.sort {
      if $0.firstTime != $1.firstTime { return $0.firstTime < $1.firstTime }
      return NaturalOrder.precedes($0.path, $1.path)
    }
  }

  /// The size of all files on disk in bytes; `nil` if one is a pipe.
  public var size: Int? {
    files.reduce(0 as Int?) { sum, file in sum.flatMap { sum in file.size.map { sum + $0 } } }
  }
}

/// A file of a recording, before it is read.
public final class RecordedFile: Sendable {
  private struct State: ~Copyable {
    var firstTime = Timestamp.none
    /// `nil` while the file is closed.
    var file: CaptureFile?
  }

  /// The path with which the file was opened; `-` is standard input.
  public let path: String
  /// The file format.
  public let format: CaptureFormat
  /// The size on disk in bytes; `nil` for a pipe.
  public let size: Int?
  /// The time of the first packet; `Timestamp.none` for a packet without a time, for a file without packets, and before
  /// the file was read ahead.
  public var firstTime: Timestamp { state.withLock { $0.firstTime } }
  /// The link types in the file header.
  public let linkTypes: [LinkType]
  private let state: Mutex<State>

  init(_ file: consuming CaptureFile) {
    path = file.path
    format = file.format
    size = file.size
    linkTypes = file.linkTypes
    state = Mutex(State(file: consume file))
  }

  /// Whether the file can be opened again with the same contents.
  private var canBeOpenedAgain: Bool { path != "-" && size != nil }

  fileprivate func lookAhead() {
    state.withLock { state in
      guard var file = state.file.take() else { return }
      // Errors are reported when the file is read.
      _ = try? file.holdNext()
      state.firstTime = file.held?.packet.time ?? .none
      if !canBeOpenedAgain { state.file = consume file }
    }
  }

  /// Returns the file, opened, and gives up ownership of it.
  func open(_ options: CaptureOptions) throws(CaptureError) -> CaptureFile {
    if let file = state.withLock({ $0.file.take() }) { return file }
    guard let file = try CaptureInput.openCapture(path, options: options) else {
      throw CaptureError(.notACapture, "is no capture any more: it has changed since it was opened first")
    }
    return file
  }
}

/// The natural order of names with numbers: `cap2` precedes `cap10`.
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
    // The names differ only in leading zeros.
    return a.lexicographicallyPrecedes(b)
  }

  private static func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }

  /// The digits at the index, without leading zeros.
  private static func number(_ text: [UInt8], _ index: inout Int) -> ArraySlice<UInt8> {
    let start = index
    while index < text.count, isDigit(text[index]) { index += 1 }
    return text[start..<index].drop { $0 == UInt8(ascii: "0") }
  }
}
