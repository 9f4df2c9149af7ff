import Bytes
import Glibc

/// The lines of a file of records, read a block at a time; `-` is standard input.
package struct RecordLines: ~Copyable {
  /// Longest line in bytes: the longest frame's items, each byte two digits, take less.
  private static let maximumLineLength = 16 << 20
  private static let blockLength = 1 << 18

  private let path: String
  private let descriptor: Int32
  private var block = [UInt8](repeating: 0, count: RecordLines.blockLength)
  /// Bytes read but not passed on yet begin at `start`; there is no line end up to `searched`.
  private var bytes: [UInt8] = []
  private var start = 0
  private var searched = 0
  private var isAtEnd = false
  private var line = 0..<0
  /// The number of the line, from 1.
  private var number = 0

  package init(_ path: String) throws(FileFailure) {
    self.path = path
    descriptor = path == "-" ? dup(STDIN_FILENO) : unsafe open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw FileFailure(.cannotOpen, path, code: errno) }
  }

  deinit { close(descriptor) }

  /// The line that is too long, before which reading has ended.
  package private(set) var cut: FileFailure?

  /// Goes to the next line; `false` after the last. Throws when it is too long.
  package mutating func next() throws(FileFailure) -> Bool {
    let isThere = try nextIfReadable()
    if let cut { throw cut }
    return isThere
  }

  /// The next line; a line that is too long ends the file and sets `cut`.
  package mutating func nextIfReadable() throws(FileFailure) -> Bool {
    while cut == nil {
      if let end = bytes[searched...].firstIndex(of: UInt8(ascii: "\n")) { return take(upTo: end, next: end + 1) }
      if isAtEnd { return start < bytes.count ? take(upTo: bytes.count, next: bytes.count) : false }
      searched = bytes.count
      try readBlock()
    }
    return false
  }

  private mutating func take(upTo end: Int, next: Int) -> Bool {
    line = start..<end
    (start, searched) = (next, next)
    number += 1
    return true
  }

  private mutating func readBlock() throws(FileFailure) {
    bytes.removeFirst(start)
    searched -= start
    start = 0
    guard bytes.count <= Self.maximumLineLength else {
      cut = FileFailure(
        .unusable, "\(path):\(number + 1)", "the line exceeds \(Self.maximumLineLength) bytes")
      return
    }
    while true {
      // Safe: at most the array's length is written.
      let count = unsafe read(descriptor, &block, block.count)
      if count > 0 {
        bytes += block[..<count]
        return
      }
      if count == 0 {
        isAtEnd = true
        return
      }
      guard errno == EINTR else { throw FileFailure(.readFailed, path, code: errno) }
    }
  }

  /// The line that `next()` went to, without its end.
  package var text: RawSpan {
    @_lifetime(borrow self)
    get { bytes.rawBytes.extracting(line) }
  }

  /// The error in a line, with its number.
  package func failure(_ problem: some CustomStringConvertible) -> FileFailure {
    FileFailure(.unusable, "\(path):\(number)", "\(problem)")
  }
}
