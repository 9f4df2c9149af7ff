import Glibc

/// Small files that are read as a whole.
package enum WholeFile {
  /// Why a file was not read.
  package enum Problem: Error, Sendable, Equatable, CustomStringConvertible {
    /// The system's error number.
    case cannotOpen(Int32)
    case readFailed(Int32)
    /// The file has more than this maximum number of bytes.
    case longerThan(Int)

    package var description: String {
      switch self {
      case .cannotOpen(let code), .readFailed(let code): SystemError.text(code)
      case .longerThan(let length): "exceeds \(length) bytes"
      }
    }
  }

  /// Reads a whole file or pipe. Of one that is too long, little more than `maximumLength` bytes are read.
  package static func read(_ path: String, maximumLength: Int) throws(Problem) -> [UInt8] {
    let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw .cannotOpen(errno) }
    defer { close(descriptor) }
    var bytes: [UInt8] = []
    var block = [UInt8](repeating: 0, count: 1 << 16)
    while true {
      // Safe: `read` writes at most the block's length.
      let count = unsafe block.withUnsafeMutableBytes { unsafe Glibc.read(descriptor, $0.baseAddress, $0.count) }
      if count == 0 { return bytes }
      if count < 0 {
        if errno == EINTR { continue }
        throw .readFailed(errno)
      }
      bytes += block[..<count]
      guard bytes.count <= maximumLength else { throw .longerThan(maximumLength) }
    }
  }

  /// Reads the file's first bytes, at most `length`, with one read.
  package static func readBeginning(_ path: String, length: Int) throws(Problem) -> [UInt8] {
    let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw .cannotOpen(errno) }
    defer { close(descriptor) }
    var bytes = [UInt8](repeating: 0, count: length)
    // Safe: `read` writes at most the array's length.
    let count = unsafe bytes.withUnsafeMutableBytes { unsafe Glibc.read(descriptor, $0.baseAddress, $0.count) }
    guard count >= 0 else { throw .readFailed(errno) }
    return Array(bytes[..<count])
  }
}
