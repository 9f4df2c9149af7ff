import Bytes
import FoundationEssentials
import Glibc

/// A file that is replaced atomically: it has the old or the complete new content, even if the disk becomes full or the
/// process is killed.
///
/// The bytes go to a new file in the same folder, which is synced and renamed. It takes the mode, and where allowed the
/// owner, of the file it replaces; a symbolic link stays and its target is replaced. Pipes and devices are written
/// directly, and so is a file that cannot be replaced: one that a descriptor stands for (`/dev/stdout`), one that is
/// mounted, one in a folder that takes no new files.
package final class WholeDocument {
  private enum Place {
    /// A file, or none yet, that a new one is renamed to.
    case replaceable(path: String, existing: Attributes?)
    /// A file that can only be written over.
    case fixed(path: String)
    /// A pipe or a device.
    case open(OutputFile)
  }

  private struct Attributes {
    var mode: mode_t
    var user: uid_t
    var group: gid_t
  }

  /// The new content, and the temporary file that has it.
  private struct Draft {
    var bytes: [UInt8]
    var file: String?
  }

  private struct Failure: Error { var code: Int32 }

  private let path: String
  private let place: Place
  private var draft: Draft?
  /// `errno` of the first failure; `EPIPE` when the reader has closed the pipe, which is not a failure.
  package private(set) var failure: Int32?

  /// Changes nothing. Throws when the file could not be written, so that a bad path is known early.
  package init(_ path: String) throws(FileFailure) {
    self.path = path
    do throws(Failure) {
      place = try Self.place(of: path)
    } catch {
      throw FileFailure(.writeFailed, path, code: error.code)
    }
  }

  deinit { discard() }

  /// Whether a file is made or replaced, and not a pipe or device written to.
  package var isFile: Bool {
    if case .replaceable = place { true } else { false }
  }

  /// Puts this and a line end in the file's place; a failure is kept for `check()`. A later call replaces it again.
  package func write(_ document: String) {
    prepare(Array((document + "\n").utf8))
    commit()
  }

  /// Writes the bytes beside the place, which `commit()` puts them in. So several documents appear together or not at
  /// all, as far as there is room for them.
  package func prepare(_ bytes: [UInt8]) {
    discard()
    guard failure == nil else { return }
    draft = Draft(bytes: bytes, file: nil)
    guard case .replaceable(let path, let existing) = place else { return }
    do throws(Failure) {
      draft?.file = try Self.newFile(in: Paths.parts(of: path).folder, bytes, existing)
    } catch {
      fail(error.code)
    }
  }

  /// Moves the prepared file to its place.
  package func commit() {
    guard let draft else { return }
    do throws(Failure) {
      switch place {
      case .replaceable(let path, _): try replace(path, with: draft)
      case .fixed(let path): try Self.overwrite(path, draft.bytes)
      case .open(let file):
        _ = file.write(draft.bytes.rawBytes)
        if let failure = file.failure { throw Failure(code: failure) }
      }
      self.draft = nil
    } catch {
      fail(error.code)
    }
  }

  /// Throws when something could not be written, `readerGone` when a pipe was closed.
  package func check() throws(FileFailure) {
    if let failure { throw FileFailure(writing: path, code: failure) }
  }

  private func fail(_ code: Int32) {
    discard()
    failure = failure ?? code
  }

  private func discard() {
    if let file = draft?.file { _ = unsafe unlink(file) }
    draft = nil
  }
}

// MARK: destination

extension WholeDocument {
  /// Follows links: their target is replaced, or created.
  private static func place(of path: String) throws(Failure) -> Place {
    var path = path
    for _ in 0..<40 {
      var status = stat()
      guard unsafe lstat(path, &status) == 0 else {
        guard errno == ENOENT, !path.isEmpty else { throw Failure(code: errno) }
        let (folder, name) = Paths.parts(of: path)
        guard !name.isEmpty else { throw Failure(code: EISDIR) }
        try probe(folder)
        return .replaceable(path: path, existing: nil)
      }
      switch status.st_mode & S_IFMT {
      case S_IFDIR: throw Failure(code: EISDIR)
      case S_IFREG: return try place(ofFile: path, status)
      case S_IFLNK:
        let folder = Paths.parts(of: path).folder
        // A descriptor of an open file: a new file in its place would not be the open one.
        if isProcess(folder) { return try directPlace(path) }
        guard let target = try? FileManager.default.destinationOfSymbolicLink(atPath: path) else {
          throw Failure(code: ENOENT)
        }
        path = target.hasPrefix("/") ? target : folder + target
      default: return try directPlace(path)
      }
    }
    throw Failure(code: ELOOP)
  }

  private static func place(ofFile path: String, _ status: stat) throws(Failure) -> Place {
    // A rename could replace a file without write permission.
    guard unsafe access(path, W_OK) == 0 else { throw Failure(code: errno) }
    do throws(Failure) {
      try probe(Paths.parts(of: path).folder)
    } catch let error where [EACCES, EPERM, EROFS].contains(error.code) {
      return .fixed(path: path)
    }
    return .replaceable(
      path: path,
      existing: Attributes(mode: status.st_mode & 0o7777, user: status.st_uid, group: status.st_gid))
  }

  private static func directPlace(_ path: String) throws(Failure) -> Place {
    var status = stat()
    guard unsafe stat(path, &status) == 0 else { throw Failure(code: errno) }
    if status.st_mode & S_IFMT == S_IFDIR { throw Failure(code: EISDIR) }
    if status.st_mode & S_IFMT == S_IFREG { return .fixed(path: path) }
    guard let file = OutputFile(later: path) else { throw Failure(code: errno) }
    return .open(file)
  }

  /// Whether a folder is of the file system that shows processes.
  private static func isProcess(_ folder: String) -> Bool {
    var (own, other) = (stat(), stat())
    return unsafe stat("/proc/self", &own) == 0 && stat(folder, &other) == 0 && own.st_dev == other.st_dev
  }

  /// Throws when the folder takes no new file.
  private static func probe(_ folder: String) throws(Failure) {
    let (descriptor, file) = try make(in: folder, mode: 0o600)
    close(descriptor)
    _ = unsafe unlink(file)
  }
}

// MARK: replacing

extension WholeDocument {
  /// A file of a name that nothing has yet, and that no listing shows.
  private static func make(in folder: String, mode: mode_t) throws(Failure) -> (descriptor: Int32, path: String) {
    for _ in 0..<100 {
      let path = "\(folder).apnscope-\(String(UInt64.random(in: .min ... .max), radix: 36))"
      let descriptor = unsafe open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode)
      if descriptor >= 0 { return (descriptor, path) }
      if errno != EEXIST && errno != EINTR { throw Failure(code: errno) }
    }
    throw Failure(code: EEXIST)
  }

  /// Returns the path of a file that has the bytes for certain. Nothing is left of it when that fails.
  private static func newFile(
    in folder: String, _ bytes: [UInt8], _ existing: Attributes?
  ) throws(Failure) -> String {
    let (descriptor, path) = try make(in: folder, mode: existing == nil ? 0o644 : 0o600)
    defer { close(descriptor) }
    do throws(Failure) {
      if let existing {
        // Only root may change the owner; the mode is set last, because changing the owner clears bits of it.
        var mode = existing.mode
        if fchown(descriptor, existing.user, existing.group) != 0, fchown(descriptor, .max, existing.group) != 0 {
          // Our group gets no rights of the old one.
          mode &= ~0o070
        }
        guard fchmod(descriptor, mode) == 0 else { throw Failure(code: errno) }
      }
      try write(bytes, to: descriptor)
      // Some file systems have nothing to be synced.
      if fsync(descriptor) != 0, errno != EINVAL, errno != ENOSYS, errno != EOPNOTSUPP { throw Failure(code: errno) }
      return path
    } catch {
      _ = unsafe unlink(path)
      throw error
    }
  }

  private func replace(_ path: String, with draft: Draft) throws(Failure) {
    guard let file = draft.file else { return }
    guard unsafe rename(file, path) == 0 else {
      // A mounted file (as in a container) cannot be replaced, nor another user's file in a sticky folder such as /tmp.
      guard [EBUSY, EPERM, EACCES].contains(errno) else { throw Failure(code: errno) }
      try Self.overwrite(path, draft.bytes)
      _ = unsafe unlink(file)
      return
    }
    Self.sync(Paths.parts(of: path).folder)
  }

  /// So that the new name lasts; the document is whole either way.
  private static func sync(_ folder: String) {
    let descriptor = unsafe open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else { return }
    _ = fsync(descriptor)
    close(descriptor)
  }

  private static func overwrite(_ path: String, _ bytes: [UInt8]) throws(Failure) {
    guard let file = OutputFile(later: path) else { throw Failure(code: errno) }
    guard file.write(bytes.rawBytes) else { throw Failure(code: file.failure ?? EIO) }
  }

  private static func write(_ bytes: [UInt8], to descriptor: Int32) throws(Failure) {
    var offset = 0
    while offset < bytes.count {
      let rest = bytes.rawBytes.extracting(offset..<bytes.count)
      // Safe: the array lives through the call.
      let written = unsafe rest.withUnsafeBytes { unsafe Glibc.write(descriptor, $0.baseAddress, $0.count) }
      if written < 0 {
        if errno == EINTR { continue }
        throw Failure(code: errno)
      }
      offset += written
    }
  }
}
