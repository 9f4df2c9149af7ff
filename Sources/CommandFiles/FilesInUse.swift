import Bytes
import FoundationEssentials
import Glibc

/// Two files of one command that are the same file, so that one would be overwritten.
package enum FileConflict: Error, Equatable, CustomStringConvertible {
  /// An output is also an input; `nil`: standard input.
  case overwritten(input: String?, by: String)
  /// Two outputs are the same file.
  case same(String, String, path: String)

  package var description: String {
    switch self {
    case .overwritten(let input, let output):
      let shown = input.map { "the input \(ControlCharacters.escaped($0))" } ?? "the file on standard input"
      return "\(output) would overwrite \(shown)"
    case .same(let one, let other, let path):
      return "\(one) and \(other) are the same file, \(ControlCharacters.escaped(path))"
    }
  }
}

/// Checks the files of one command, so that no file that it reads or already writes is overwritten.
///
/// A file is identified by device and inode, regardless of links; one that does not exist yet by its folder and name.
/// Pipes and devices may be named any number of times.
package enum FilesInUse {
  private enum Identity: Hashable {
    case file(device: dev_t, inode: ino_t)
    case missing(device: dev_t, folder: ino_t, name: String)
    /// Nothing that could be written over.
    case other
  }

  /// Throws if a file of `writing` is also in `reading`, or twice in `writing`.
  ///
  /// - Parameters:
  ///   - reading: paths; `-` is standard input, and a folder stands for the certificates and keys in it.
  ///   - writing: paths, each with its origin: an option, or "standard output".
  package static func check(
    reading: [String], writing: [(name: String, path: String?)]
  ) throws(FileConflict) {
    var read: [Identity: String] = [:]
    for path in reading.flatMap(files) { read[identity(of: path)] = path }
    var written: [Identity: String] = [:]
    for (name, path) in writing {
      guard let path else { continue }
      let file = identity(of: path == OutputFile.standardOutput ? standardOutputPath : path)
      guard file != .other else { continue }
      if let input = read[file] {
        throw .overwritten(input: input == StandardInput.path ? nil : input, by: name)
      }
      if let other = written[file] {
        throw .same(other, name, path: path)
      }
      written[file] = name
    }
  }

  /// Standard output, for commands that write to it.
  package static let standardOutput: (name: String, path: String?) = ("standard output", standardOutputPath)
  private static let standardOutputPath = "/dev/stdout"

  package static func isSame(_ a: String, _ b: String) -> Bool {
    let file = identity(of: a)
    return file != .other && file == identity(of: b)
  }

  private static func files(_ path: String) -> [String] {
    if path == "-" { return [StandardInput.path] }
    guard Paths.isDirectory(path), let names = try? FileManager.default.contentsOfDirectory(atPath: path) else {
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
    let (folder, name) = Paths.parts(of: path)
    // Writing to a dangling link creates its target.
    if let target = try? FileManager.default.destinationOfSymbolicLink(atPath: path), links < 40 {
      return identity(of: target.hasPrefix("/") ? target : folder + target, links: links + 1)
    }
    guard !name.isEmpty, unsafe stat(folder, &status) == 0 else { return .other }
    return .missing(device: status.st_dev, folder: status.st_ino, name: name)
  }
}
