import Bytes
import Glibc

/// Standard input as a file that can be read from its beginning more than once, as a report needs its input.
package enum StandardInput {
  /// The path to open.
  package static let path = "/dev/stdin"

  /// Whether opening `path` gives the whole input: it is a file that was not read from yet.
  package static var isWholeFile: Bool {
    var status = stat()
    let isFile = unsafe fstat(STDIN_FILENO, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
    return isFile && lseek(STDIN_FILENO, 0, SEEK_CUR) == 0
  }

  /// Spools a pipe to an unnamed file, which takes disk space instead of memory until the program ends; `path` then
  /// names it.
  ///
  /// - Parameters:
  ///   - folder: the folder of the file.
  ///   - isInterrupted: ends reading the pipe; called before each read. The bytes read by then are the input.
  package static func keep(in folder: String, until isInterrupted: () -> Bool) throws(FileFailure) {
    guard let file = UnnamedFile.open(in: folder) else { throw FileFailure(.writeFailed, folder, code: errno) }
    defer { close(file) }
    var block = [UInt8](repeating: 0, count: 1 << 18)
    while !isInterrupted() {
      // Safe: at most the block's length is written.
      let count = unsafe read(STDIN_FILENO, &block, block.count)
      if count == 0 { break }
      if count < 0 {
        if errno == EINTR { continue }
        throw FileFailure(.cannotOpen, "standard input", code: errno)
      }
      var written = 0
      while written < count {
        // Safe: written..<count lies in the block.
        let step = unsafe block.withUnsafeBytes { bytes in
          unsafe bytes.baseAddress.map { unsafe write(file, $0 + written, count - written) } ?? 0
        }
        if step < 0, errno == EINTR { continue }
        guard step > 0 else { throw FileFailure(.writeFailed, folder, code: errno) }
        written += step
      }
    }
    guard dup2(file, STDIN_FILENO) >= 0 else { throw FileFailure(.writeFailed, "standard input", code: errno) }
  }
}
