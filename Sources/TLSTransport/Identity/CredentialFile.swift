import Bytes
import Glibc

/// Credentials as bytes, with their name for error messages.
struct CredentialSource {
  var name: String
  var bytes: [UInt8]

  init(name: String, bytes: [UInt8]) {
    self.name = name
    self.bytes = bytes
  }

  init(file: String) throws(TLSError) {
    self.init(name: file, bytes: try CredentialFile.read(file))
  }

  /// The reason why encrypted content could not be decrypted, with OpenSSL's texts; the error queue is emptied.
  func passPhraseError(_ passPhrase: [UInt8]?) -> TLSError {
    let problem =
      passPhrase == nil ? "is encrypted, and no pass phrase was given" : "cannot be decrypted with this pass phrase"
    return .fromOpenSSL(.credentials, "\(name): \(problem)")
  }
}

/// Small files with certificates and keys.
enum CredentialFile {
  /// The largest file in bytes; larger ones are refused.
  static let maximumLength = 1 << 20

  /// Reads all of it; a pipe will do.
  static func read(_ path: String) throws(TLSError) -> [UInt8] {
    do {
      return try WholeFile.read(path, maximumLength: maximumLength)
    } catch .longerThan {
      throw TLSError(.file, "\(path): exceeds 1 MiB, too long for a certificate or key")
    } catch {
      throw TLSError(.file, "\(path): \(error)")
    }
  }

  /// Writes a file atomically: the bytes go to a new file in the same folder, which is renamed when they are on the
  /// disk.
  ///
  /// The file has its mode from its creation on. Two writers of one file must not run at the same time.
  static func write(_ bytes: [UInt8], to path: String, mode: mode_t) throws(TLSError) {
    let slash = path.lastIndex(of: "/").map { path.index(after: $0) } ?? path.startIndex
    let unfinished = String(path[..<slash]) + "." + path[slash...] + ".new"
    // Leftovers of a killed process.
    _ = unsafe unlink(unfinished)
    let descriptor = unsafe open(unfinished, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode)
    guard descriptor >= 0 else { throw .file(path, errno) }
    var problem = writeAll(bytes, to: descriptor)
    if close(descriptor) != 0 && problem == nil { problem = errno }
    if problem == nil, unsafe rename(unfinished, path) != 0 { problem = errno }
    guard let problem else { return }
    _ = unsafe unlink(unfinished)
    throw .file(path, problem)
  }

  /// `errno` of what failed.
  private static func writeAll(_ bytes: [UInt8], to descriptor: Int32) -> Int32? {
    var offset = 0
    while offset < bytes.count {
      // Safe: `write` reads only the bytes after the offset.
      let count = unsafe bytes.withUnsafeBytes {
        unsafe Glibc.write(descriptor, $0.baseAddress.map { unsafe $0 + offset }, $0.count - offset)
      }
      if count < 0 {
        if errno == EINTR { continue }
        return errno
      }
      offset += count
    }
    return fsync(descriptor) == 0 ? nil : errno
  }

  static func exists(_ path: String) -> Bool { (unsafe access(path, F_OK)) == 0 }
}

extension TLSError {
  /// The system's attributes of a file.
  static func file(_ path: String, _ code: Int32) -> TLSError {
    TLSError(.file, "\(path): \(SystemError.text(code))")
  }
}
