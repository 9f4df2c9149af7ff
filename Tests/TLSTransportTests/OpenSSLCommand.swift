import Foundation
import TestSupport

/// The `openssl` command in a folder: a second opinion on every file.
struct OpenSSLCommand {
  var folder: URL

  struct Answer {
    var status: Int32
    /// What it wrote to standard output and standard error.
    var text: String
  }

  @discardableResult
  func run(_ arguments: String...) throws -> Answer { try run(arguments) }

  @discardableResult
  func run(_ arguments: [String]) throws -> Answer {
    let output = folder.appending(path: ".openssl-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: output) }
    let ending = try ChildProcess(try path(), arguments, in: folder, output: output, errors: output).end()
    return Answer(status: ending.status, text: try String(contentsOf: output, encoding: .utf8))
  }

  private func path() throws -> String {
    guard let path = ExternalTool.path(of: "openssl") else { throw ExternalTool.Failure.missing("openssl") }
    return path
  }
}

extension URL {
  /// Writes a file into the folder and returns its path.
  @discardableResult
  func write(_ text: String, _ name: String) throws -> String {
    let file = appending(path: name)
    try Data(text.utf8).write(to: file)
    return file.path
  }

  func text(of name: String) throws -> String { try String(contentsOf: appending(path: name), encoding: .utf8) }

  func mode(of name: String) throws -> Int? {
    try FileManager.default.attributesOfItem(atPath: appending(path: name).path)[.posixPermissions] as? Int
  }
}
