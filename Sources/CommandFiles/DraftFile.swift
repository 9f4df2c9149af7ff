import Bytes
import Glibc

/// A new file that is moved to its path when it is complete. Until then only its owner can read it.
///
/// Until then it has no name, so that nothing remains if the process is killed. On a file system without unnamed files
/// (O_TMPFILE) it has a random new name, which a killed process leaves behind.
final class DraftFile {
  private let folder: String
  private let descriptor: Int32
  /// Its name, if it has one.
  private var path: String?
  /// The mode of a new file, as the process' mask leaves it.
  private let usualMode: mode_t

  /// O_TMPFILE, which the module does not have.
  private static let unnamed: Int32 = 0o20_000_000 | O_DIRECTORY

  /// - Parameter folder: with a slash at its end.
  init(in folder: String) throws(SystemFailure) {
    self.folder = folder
    let opened = unsafe open(folder, O_RDWR | Self.unnamed | O_CLOEXEC, 0o644)
    // Its name comes from the list of open files.
    if opened >= 0, unsafe access("/proc/self/fd/\(opened)", F_OK) == 0 {
      descriptor = opened
    } else {
      if opened >= 0 {
        close(opened)
      } else if ![EOPNOTSUPP, EISDIR, EINVAL, ENOENT, EINTR].contains(errno) {
        throw SystemFailure(code: errno)
      }
      (descriptor, path) = try Self.make(in: folder)
    }
    var status = stat()
    usualMode = unsafe fstat(descriptor, &status) == 0 ? status.st_mode & 0o777 : 0o600
    _ = fchmod(descriptor, 0o600)
  }

  deinit {
    if let path { _ = unsafe unlink(path) }
    close(descriptor)
  }

  /// A name that nothing has, and that no listing shows.
  private static func newName(in folder: String) -> String {
    "\(folder).apnscope-\(String(UInt64.random(in: .min ... .max), radix: 36))"
  }

  private static let attempts = 100

  private static func make(in folder: String) throws(SystemFailure) -> (descriptor: Int32, path: String) {
    for _ in 0..<attempts {
      let path = newName(in: folder)
      let descriptor = unsafe open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o644)
      if descriptor >= 0 { return (descriptor, path) }
      if errno != EEXIST && errno != EINTR { throw SystemFailure(code: errno) }
    }
    throw SystemFailure(code: EEXIST)
  }

  /// Writes all of it at the end.
  func write(_ bytes: RawSpan) throws(SystemFailure) {
    var offset = 0
    while offset < bytes.byteCount {
      let rest = bytes.extracting(offset..<bytes.byteCount)
      // Safe: the memory lives through the call.
      let written = unsafe rest.withUnsafeBytes { unsafe Glibc.write(descriptor, $0.baseAddress, $0.count) }
      if written < 0 {
        if errno == EINTR { continue }
        throw SystemFailure(code: errno)
      }
      offset += written
    }
  }

  /// Sets its mode and owner, and syncs its bytes to the disk.
  ///
  /// - Parameters:
  ///   - existing: the attributes of the file that it replaces.
  ///   - mask: the most permissions that it gets.
  func complete(like existing: FileAttributes?, atMost mask: mode_t = 0o7777) throws(SystemFailure) {
    var mode = existing?.mode ?? usualMode
    if let existing, fchown(descriptor, existing.user, existing.group) != 0,
      fchown(descriptor, .max, existing.group) != 0
    {
      // Only root may change the owner. Our group gets no permissions of the old one.
      mode &= ~0o070
    }
    // Last, because changing the owner clears bits of it.
    guard fchmod(descriptor, mode & mask) == 0 else { throw SystemFailure(code: errno) }
    // Some file systems have nothing to be synced.
    if fsync(descriptor) != 0, errno != EINVAL, errno != ENOSYS, errno != EOPNOTSUPP {
      throw SystemFailure(code: errno)
    }
  }

  /// Moves it to a path in its folder.
  func move(to target: String) throws(SystemFailure) {
    let source = try named()
    guard unsafe rename(source, target) == 0 else { throw SystemFailure(code: errno) }
    path = nil
    Self.sync(folder)
  }

  /// Moves it to a path in its folder. If that cannot be replaced, as a mounted file (in a container) or another user's
  /// in a sticky folder such as /tmp, its content is overwritten.
  func replace(_ target: String, atMost mask: mode_t = 0o7777) throws(SystemFailure) {
    do throws(SystemFailure) {
      try move(to: target)
    } catch {
      guard [EBUSY, EPERM, EACCES].contains(error.code) else { throw error }
      guard let file = OutputFile(later: target) else { throw SystemFailure(code: errno) }
      try copy(to: file)
      file.limit(to: mask)
      if let failure = file.failure { throw SystemFailure(code: failure) }
    }
  }

  private func copy(to file: OutputFile) throws(SystemFailure) {
    var block = [UInt8](repeating: 0, count: 1 << 18)
    var offset = 0
    file.begin()
    while true {
      // Safe: at most the block's length is written.
      let count = unsafe pread(descriptor, &block, block.count, off_t(offset))
      if count == 0 { return }
      if count < 0 {
        if errno == EINTR { continue }
        throw SystemFailure(code: errno)
      }
      guard file.write(block.rawBytes.extracting(0..<count)) else { throw SystemFailure(code: file.failure ?? EIO) }
      offset += count
    }
  }

  /// Its path; it gets a name if it has none.
  private func named() throws(SystemFailure) -> String {
    if let path { return path }
    for _ in 0..<Self.attempts {
      let name = Self.newName(in: folder)
      if unsafe linkat(AT_FDCWD, "/proc/self/fd/\(descriptor)", AT_FDCWD, name, AT_SYMLINK_FOLLOW) == 0 {
        path = name
        return name
      }
      if errno != EEXIST && errno != EINTR { throw SystemFailure(code: errno) }
    }
    throw SystemFailure(code: EEXIST)
  }

  /// Syncs the folder, so that the new name is durable; the file is complete either way.
  private static func sync(_ folder: String) {
    let descriptor = unsafe open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else { return }
    _ = fsync(descriptor)
    close(descriptor)
  }
}
