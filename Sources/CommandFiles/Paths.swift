import FoundationEssentials
import Glibc

/// Questions about paths.
package enum Paths {
  /// Whether it leads to a directory.
  package static func isDirectory(_ path: String) -> Bool {
    var status = stat()
    return unsafe stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
  }

  /// The descriptor of this process that a path means, such as /dev/stdout and /dev/fd/3.
  package static func descriptor(of path: String) -> Int32? {
    var path = path
    for _ in 0..<40 {
      var (own, status) = (stat(), stat())
      guard unsafe lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFLNK else { return nil }
      let (folder, name) = parts(of: path)
      if unsafe stat("/proc/self/fd", &own) == 0, unsafe stat(folder, &status) == 0, own.st_dev == status.st_dev,
        own.st_ino == status.st_ino
      {
        return Int32(name)
      }
      guard let target = try? FileManager.default.destinationOfSymbolicLink(atPath: path) else { return nil }
      path = target.hasPrefix("/") ? target : folder + target
    }
    return nil
  }

  /// Whether it leads to anything.
  package static func exists(_ path: String) -> Bool { unsafe access(path, F_OK) == 0 }

  package static func path(of name: String, in directory: String) -> String {
    (directory.hasSuffix("/") ? directory : directory + "/") + name
  }

  /// The folder with a slash at its end, and the name in it.
  package static func parts(of path: String) -> (folder: String, name: String) {
    guard let slash = path.lastIndex(of: "/") else { return ("./", path) }
    return (String(path[...slash]), String(path[path.index(after: slash)...]))
  }
}
