import ArgumentParser
import Bytes
import Glibc

/// Standard input as a file that can be read from its beginning more than once, as a report needs its input.
enum StandardInput {
  /// The path of an input; `-` is standard input. What comes through a pipe is kept in an unnamed file of a folder, so
  /// that it takes room on its disk and none in memory, until the program ends. A folder that is not there is not made,
  /// for the input may be no good: the file is then of the nearest that it would be in.
  ///
  /// Ctrl-C ends what comes through a pipe: what has come by then is the input.
  ///
  /// Complains and throws an exit code when it cannot be read or kept.
  static func path(of input: String, keepingNear folder: String) throws -> String {
    guard input == "-" else { return input }
    var status = stat()
    let isFile = unsafe fstat(STDIN_FILENO, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
    // Opened by this name a file is read from its beginning.
    if !isFile || lseek(STDIN_FILENO, 0, SEEK_CUR) != 0 { try keep(in: ReportFolder.existing(folder)) }
    return "/dev/stdin"
  }

  /// - Parameter folder: with a slash at its end.
  private static func keep(in folder: String) throws {
    let name = "\(folder).standard-input-XXXXXX"
    var template = Array(name.utf8CString)
    // Safe: the template ends with its zero, and no longer one is written.
    let file = unsafe template.withUnsafeMutableBufferPointer { letters in
      guard let start = letters.baseAddress else { return Int32(-1) }
      let file = unsafe mkstemp(start)
      if file >= 0 { _ = unsafe unlink(start) }
      return file
    }
    guard file >= 0 else { throw failure(folder, ExitStatus.inputOutput) }
    defer { close(file) }
    Interrupt.watch()
    var block = [UInt8](repeating: 0, count: 1 << 18)
    while !Interrupt.isRequested {
      // Safe: at most the block's length is written.
      let count = unsafe read(STDIN_FILENO, &block, block.count)
      if count == 0 { break }
      if count < 0 {
        if errno == EINTR { continue }
        throw failure("standard input", ExitStatus.cannotOpen)
      }
      var written = 0
      while written < count {
        // Safe: written..<count lies in the block.
        let step = unsafe block.withUnsafeBytes { bytes in
          unsafe bytes.baseAddress.map { unsafe write(file, $0 + written, count - written) } ?? 0
        }
        if step < 0, errno == EINTR { continue }
        guard step > 0 else { throw failure(folder, ExitStatus.inputOutput) }
        written += step
      }
    }
    guard dup2(file, STDIN_FILENO) >= 0 else { throw failure("standard input", ExitStatus.inputOutput) }
  }

  private static func failure(_ name: String, _ status: ExitCode) -> ExitCode {
    complain("\(name): \(SystemError.text(errno))")
    return status
  }
}
