import ArgumentParser
import Bytes
import FoundationEssentials
import Glibc

/// The files of one command, so that none that it reads, or writes already, is written over.
///
/// A file is told by device and inode, whatever links lead to it, and one that is not there yet by its folder and name.
/// Pipes and devices may be named as often as one likes.
enum FilesInUse {
  private enum Identity: Hashable {
    case file(device: dev_t, inode: ino_t)
    case missing(device: dev_t, folder: ino_t, name: String)
    /// Nothing that could be written over.
    case other
  }

  /// Throws a usage error when a file of `writing` is one of `reading`, or another of `writing`.
  ///
  /// - Parameters:
  ///   - reading: paths; `-` is standard input, and a folder stands for the certificates and keys in it.
  ///   - writing: paths, each with what it was named by: an option, or "standard output".
  static func check(reading: [String], writing: [(name: String, path: String?)]) throws {
    var read: [Identity: String] = [:]
    for path in reading.flatMap(files) { read[identity(of: path)] = path }
    var written: [Identity: String] = [:]
    for (name, path) in writing {
      guard let path else { continue }
      let file = identity(of: path)
      guard file != .other else { continue }
      if let input = read[file] {
        let shown = input == standardInput ? "the file that is standard input" : ControlCharacters.escaped(input)
        throw ValidationError("\(name) would overwrite \(shown), which is to be read.")
      }
      if let other = written[file] {
        throw ValidationError("\(other) and \(name) are the same file, \(ControlCharacters.escaped(path)).")
      }
      written[file] = name
    }
  }

  /// Standard output, for commands that write to it.
  static let standardOutput: (name: String, path: String?) = ("standard output", "/dev/stdout")
  private static let standardInput = "/dev/stdin"

  static func isSame(_ a: String, _ b: String) -> Bool {
    let file = identity(of: a)
    return file != .other && file == identity(of: b)
  }

  private static func files(_ path: String) -> [String] {
    if path == "-" { return [standardInput] }
    guard Machine.isDirectory(path), let names = try? FileManager.default.contentsOfDirectory(atPath: path) else {
      return [path]
    }
    return names.filter { name in [".pem", ".key", ".p12"].contains { name.hasSuffix($0) } }.map { "\(path)/\($0)" }
  }

  private static func identity(of path: String, links: Int = 0) -> Identity {
    var status = stat()
    if unsafe stat(path, &status) == 0 {
      return status.st_mode & S_IFMT == S_IFREG ? .file(device: status.st_dev, inode: status.st_ino) : .other
    }
    guard errno == ENOENT, !path.isEmpty else { return .other }
    let (folder, name) = parts(of: path)
    // A link to what is not there makes it when it is written to.
    if let target = try? FileManager.default.destinationOfSymbolicLink(atPath: path), links < 40 {
      return identity(of: target.hasPrefix("/") ? target : folder + target, links: links + 1)
    }
    guard !name.isEmpty, unsafe stat(folder, &status) == 0 else { return .other }
    return .missing(device: status.st_dev, folder: status.st_ino, name: name)
  }

  /// The folder with a slash at its end, and the name in it.
  private static func parts(of path: String) -> (folder: String, name: String) {
    guard let slash = path.lastIndex(of: "/") else { return ("./", path) }
    return (String(path[...slash]), String(path[path.index(after: slash)...]))
  }
}
