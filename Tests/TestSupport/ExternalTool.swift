import Foundation

/// A program of the machine that a test compares with.
public enum ExternalTool {
  /// The full path of a program by its name or path, `nil` when it is not installed.
  public static func path(of name: String) -> String? {
    if name.contains("/") { return FileManager.default.isExecutableFile(atPath: name) ? name : nil }
    let folders = (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":")
    return folders.map { "\($0)/\(name)" }.first { FileManager.default.isExecutableFile(atPath: $0) }
  }

  public static func isInstalled(_ name: String) -> Bool { path(of: name) != nil }

  /// Runs the program and returns its standard output. Throws when it is missing or ends with another status.
  public static func run(
    _ name: String, _ arguments: [String], input: [UInt8] = [], statuses: Set<Int32> = [0]
  ) throws -> [UInt8] {
    guard let path = path(of: name) else { throw Failure.missing(name) }
    return try withTemporaryFolder { folder in
      // Files, not pipes: a pipe that nobody empties would stop the program.
      let (source, target) = (folder.appendingPathComponent("in"), folder.appendingPathComponent("out"))
      let errors = folder.appendingPathComponent("errors")
      try Data(input).write(to: source)
      let status = try ChildProcess(path, arguments, input: .file(source), output: target, errors: errors).end().status
      guard statuses.contains(status) else {
        throw Failure.status(name, status, String(decoding: try Data(contentsOf: errors).suffix(2_000), as: UTF8.self))
      }
      return [UInt8](try Data(contentsOf: target))
    }
  }

  public enum Failure: Error {
    case missing(String)
    /// The program, its status, and what it wrote last to standard error.
    case status(String, Int32, String)
  }
}

/// Gives `body` a folder that is gone afterwards.
@discardableResult
public func withTemporaryFolder<T>(_ body: (URL) throws -> T) throws -> T {
  let folder = FileManager.default.temporaryDirectory.appendingPathComponent("apnscope-\(UUID().uuidString)")
  try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
  defer { try? FileManager.default.removeItem(at: folder) }
  return try body(folder)
}

/// Gives `body` the path of a file with these bytes.
public func withFile<T>(_ bytes: [UInt8], _ body: (String) throws -> T) throws -> T {
  try withTemporaryFolder { folder in
    let file = folder.appendingPathComponent("file")
    try Data(bytes).write(to: file)
    return try body(file.path)
  }
}

/// The SHA-256 of each, in lower-case hexadecimal.
public func sha256(_ contents: [[UInt8]]) throws -> [String] {
  try withTemporaryFolder { folder in
    let files = contents.indices.map { folder.appendingPathComponent("\($0)") }
    for (file, bytes) in zip(files, contents) { try Data(bytes).write(to: file) }
    let output = try ExternalTool.run("sha256sum", files.map(\.path))
    return String(decoding: output, as: UTF8.self).split(separator: "\n").map { String($0.prefix(64)) }
  }
}
