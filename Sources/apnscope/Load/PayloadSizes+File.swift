import ArgumentParser
import Bytes
import Glibc
import LoadTest

extension PayloadSizes {
  /// Longest line in bytes: the longest frame's items, each byte two digits, take less.
  private static let maximumLineLength = 16 << 20
  private static let blockLength = 1 << 18

  /// Reads the records in a file, a block at a time; `-` is standard input. Complains and throws an exit code.
  init(contentsOf path: String) throws {
    let descriptor = path == "-" ? dup(STDIN_FILENO) : unsafe open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else {
      complain("\(path): \(SystemError.text(errno))")
      throw ExitStatus.cannotOpen
    }
    defer { close(descriptor) }
    self.init()
    var line = 1
    var block = [UInt8](repeating: 0, count: Self.blockLength)
    // Lines that are not read yet, and the beginning of one that the last block did not end.
    var text: [UInt8] = []
    while true {
      // Safe: at most the array's length is written.
      let count = unsafe read(descriptor, &block, block.count)
      if count < 0 {
        if errno == EINTR { continue }
        complain("\(path): \(SystemError.text(errno))")
        throw ExitStatus.inputOutput
      }
      var search = text.count
      text += block[..<count]
      var start = 0
      while let end = text[search...].firstIndex(of: UInt8(ascii: "\n")) {
        try add(text, start..<end, path, line)
        (start, search, line) = (end + 1, end + 1, line + 1)
      }
      if count == 0 {
        try add(text, start..<text.count, path, line)
        break
      }
      text.removeFirst(start)
      guard text.count <= Self.maximumLineLength else {
        complain("\(path):\(line): the line is longer than \(Self.maximumLineLength) bytes")
        throw ExitStatus.damaged
      }
    }
    guard self.count > 0 else {
      complain("\(path): there is no notification with a payload")
      throw ExitStatus.damaged
    }
    if clamped > 0 {
      complain(
        "\(path): \(grouped(clamped)) of \(grouped(self.count)) payloads have sizes that cannot be made; the nearest is taken"
      )
    }
  }

  private mutating func add(_ text: [UInt8], _ range: Range<Int>, _ path: String, _ line: Int) throws {
    do {
      try add(record: text.rawBytes.extracting(range))
    } catch {
      complain("\(path):\(line): \(error)")
      throw ExitStatus.damaged
    }
  }
}
