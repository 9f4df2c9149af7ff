import FoundationEssentials

/// Writes `bytes` to a file for as long as `body` runs.
package func withTemporaryFile<T>(_ bytes: [UInt8], _ body: (String) throws -> T) throws -> T {
  let path = FileManager.default.temporaryDirectory.appending(path: "apnscope-\(UUID().uuidString)").path
  try Data(bytes).write(to: URL(filePath: path))
  defer { try? FileManager.default.removeItem(atPath: path) }
  return try body(path)
}
