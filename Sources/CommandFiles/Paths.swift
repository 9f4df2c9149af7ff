import Glibc

/// Questions about paths.
package enum Paths {
  /// Whether it leads to a directory.
  package static func isDirectory(_ path: String) -> Bool {
    var status = stat()
    return unsafe stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
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
