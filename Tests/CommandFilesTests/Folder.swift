import Foundation

/// A folder that is gone with the test.
struct Folder: ~Copyable {
  /// With a slash at its end.
  let path: String

  init() throws {
    path = "\(NSTemporaryDirectory())/apnscope-files-\(UUID().uuidString)/"
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  func write(_ text: String, _ name: String) throws { try Data(text.utf8).write(to: URL(filePath: path + name)) }

  /// `nil` when there is no such file.
  func read(_ name: String) -> String? { try? String(contentsOfFile: path + name, encoding: .utf8) }

  func link(_ name: String, to target: String) throws {
    try FileManager.default.createSymbolicLink(atPath: path + name, withDestinationPath: target)
  }

  func setMode(_ mode: Int, of name: String) throws {
    try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path + name)
  }

  func mode(of name: String) throws -> Int? {
    (try FileManager.default.attributesOfItem(atPath: path + name)[.posixPermissions] as? NSNumber)?.intValue
  }

  var names: [String] {
    get throws { try FileManager.default.contentsOfDirectory(atPath: path).sorted() }
  }
}
