import ArgumentParser
import Bytes
import Glibc

/// The lines of a file of records, read a block at a time; `-` is standard input. Complains and throws an exit code.
struct RecordLines: ~Copyable {
  /// Longest line in bytes: the longest frame's items, each byte two digits, take less.
  private static let maximumLineLength = 16 << 20
  private static let blockLength = 1 << 18

  private let path: String
  private let descriptor: Int32
  private var block = [UInt8](repeating: 0, count: RecordLines.blockLength)
  /// What was read and not passed on yet begins at `start`; up to `searched` there is no line end.
  private var bytes: [UInt8] = []
  private var start = 0
  private var searched = 0
  private var isAtEnd = false
  private var refusesLongLines = true
  private var line = 0..<0
  /// The number of the line, from 1.
  private var number = 0

  init(_ path: String) throws {
    self.path = path
    descriptor = path == "-" ? dup(STDIN_FILENO) : unsafe open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else {
      complain("\(path): \(SystemError.text(errno))")
      throw ExitStatus.cannotOpen
    }
  }

  deinit { close(descriptor) }

  /// A line was too long, and reading has ended before it.
  private(set) var isCut = false

  /// The same as `next()`, but a line that is too long ends the file.
  ///
  /// - Parameter isQuiet: says nothing about it.
  mutating func nextIfReadable(isQuiet: Bool) throws -> Bool {
    refusesLongLines = false
    defer { refusesLongLines = true }
    let isThere = try next()
    if isCut && !isQuiet {
      complain(
        "\(path):\(number + 1): the line is longer than \(Self.maximumLineLength) bytes; nothing is read from here on")
    }
    return isThere
  }

  /// Goes to the next line; `false` behind the last.
  mutating func next() throws -> Bool {
    while !isCut {
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

  private mutating func readBlock() throws {
    bytes.removeFirst(start)
    searched -= start
    start = 0
    guard bytes.count <= Self.maximumLineLength else {
      if !refusesLongLines {
        isCut = true
        return
      }
      complain("\(path):\(number + 1): the line is longer than \(Self.maximumLineLength) bytes")
      throw ExitStatus.damaged
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
      guard errno == EINTR else {
        complain("\(path): \(SystemError.text(errno))")
        throw ExitStatus.inputOutput
      }
    }
  }

  /// The line that `next()` went to, without its end.
  var text: RawSpan {
    @_lifetime(borrow self)
    get { bytes.rawBytes.extracting(line) }
  }

  /// Says what is wrong with the line, and where it stands.
  func refuse(_ problem: some CustomStringConvertible) -> ExitCode {
    complain("\(path):\(number): \(problem)")
    return ExitStatus.damaged
  }
}
