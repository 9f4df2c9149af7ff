import FoundationEssentials
import Glibc

/// A system error number, before it is known which operation it is reported for.
struct SystemFailure: Error { var code: Int32 }

/// The kind of file at an output's path, which decides how the output is written: only a regular file is replaced.
enum OutputPlace {
  /// A path that a new file can be renamed to, and the attributes of the file there, if any.
  case replaceable(path: String, existing: FileAttributes?)
  /// A file that can only be overwritten: in a folder that accepts no new files, or a descriptor of another process.
  case fixed(path: String)
  /// A descriptor of this process (`-`, `/dev/stdout`), a pipe or a device.
  case open(OutputFile)

  /// Follows links: their target is replaced, or created. Changes nothing. Throws when nothing could be written there.
  init(_ path: String) throws(SystemFailure) {
    if path == OutputFile.standardOutput {
      self = .open(OutputFile())
      return
    }
    var path = path
    for _ in 0..<40 {
      var status = stat()
      guard unsafe lstat(path, &status) == 0 else {
        guard errno == ENOENT, !path.isEmpty else { throw SystemFailure(code: errno) }
        let (folder, name) = Paths.parts(of: path)
        guard !name.isEmpty else { throw SystemFailure(code: EISDIR) }
        try Self.probe(folder)
        self = .replaceable(path: path, existing: nil)
        return
      }
      switch status.st_mode & S_IFMT {
      case S_IFDIR: throw SystemFailure(code: EISDIR)
      case S_IFREG:
        self = try Self.place(ofFile: path, status)
        return
      case S_IFLNK:
        let folder = Paths.parts(of: path).folder
        if Paths.descriptor(of: path) != nil {
          guard let file = OutputFile(later: path) else { throw SystemFailure(code: errno) }
          self = .open(file)
          return
        }
        // A descriptor of another process: a new file at its path would not be the open one.
        if Self.isProcess(folder) {
          self = try Self.directPlace(path)
          return
        }
        guard let target = try? FileManager.default.destinationOfSymbolicLink(atPath: path) else {
          throw SystemFailure(code: ENOENT)
        }
        path = target.hasPrefix("/") ? target : folder + target
      default:
        self = try Self.directPlace(path)
        return
      }
    }
    throw SystemFailure(code: ELOOP)
  }

  private static func place(ofFile path: String, _ status: stat) throws(SystemFailure) -> OutputPlace {
    // A rename could replace a file without write permission.
    guard unsafe access(path, W_OK) == 0 else { throw SystemFailure(code: errno) }
    do throws(SystemFailure) {
      try probe(Paths.parts(of: path).folder)
    } catch let error where [EACCES, EPERM, EROFS].contains(error.code) {
      return .fixed(path: path)
    }
    return .replaceable(path: path, existing: FileAttributes(status))
  }

  private static func directPlace(_ path: String) throws(SystemFailure) -> OutputPlace {
    var status = stat()
    guard unsafe stat(path, &status) == 0 else { throw SystemFailure(code: errno) }
    if status.st_mode & S_IFMT == S_IFDIR { throw SystemFailure(code: EISDIR) }
    if status.st_mode & S_IFMT == S_IFREG { return .fixed(path: path) }
    guard let file = OutputFile(later: path) else { throw SystemFailure(code: errno) }
    return .open(file)
  }

  /// Whether a folder is of the file system that shows processes.
  private static func isProcess(_ folder: String) -> Bool {
    var (own, other) = (stat(), stat())
    return unsafe stat("/proc/self", &own) == 0 && stat(folder, &other) == 0 && own.st_dev == other.st_dev
  }

  /// Throws if no new file can be created in the folder.
  private static func probe(_ folder: String) throws(SystemFailure) { _ = try DraftFile(in: folder) }
}

/// The mode and the owner of a file.
struct FileAttributes {
  var mode: mode_t
  var user: uid_t
  var group: gid_t

  init(_ status: stat) { (mode, user, group) = (status.st_mode & 0o7777, status.st_uid, status.st_gid) }
}
