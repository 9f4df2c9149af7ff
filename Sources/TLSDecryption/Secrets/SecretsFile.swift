import Bytes
import Glibc

/// A small file with a secret in it.
public enum SecretsFile {
  /// Reads all of it; throws when it cannot be read or is longer than the limit.
  public static func read(_ path: String, maximumLength: Int) throws(SecretsError) -> [UInt8] {
    let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw SecretsError(SystemError.text(errno), kind: .cannotOpen) }
    defer { close(descriptor) }
    var bytes: [UInt8] = []
    var block = [UInt8](repeating: 0, count: 1 << 16)
    while true {
      // Safe: `read` writes at most the block's length.
      let count = unsafe block.withUnsafeMutableBytes { unsafe Glibc.read(descriptor, $0.baseAddress, $0.count) }
      if count == 0 { return bytes }
      if count < 0 {
        if errno == EINTR { continue }
        throw SecretsError(SystemError.text(errno), kind: .readFailed)
      }
      bytes += block[..<count]
      guard bytes.count <= maximumLength else { throw SecretsError("is longer than \(maximumLength) bytes") }
    }
  }
}
