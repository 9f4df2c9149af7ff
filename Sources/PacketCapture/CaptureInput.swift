import Bytes

/// A file of either kind, recognised by its first bytes.
public enum CaptureInput: ~Copyable {
  case packets(CaptureFile)
  case dump(RawDump)

  /// Opens a file, or standard input for `-`. Throws when it cannot be opened, is empty, or has a damaged header.
  public static func open(_ path: String, options: CaptureOptions) throws(CaptureError) -> CaptureInput {
    var input = try InputFile.opening(path, blockLength: options.blockLength)
    guard try input.fill(atLeast: 1) else {
      // Compressed blocks are unpacked whole or not at all.
      throw CaptureError(.notACapture, input.warning.map { "\($0), and nothing can be decompressed" } ?? "is empty")
    }
    _ = try input.fill(atLeast: 24)
    if try CaptureFile.recognises(input.window, options: options) {
      return .packets(try CaptureFile(input, options: options))
    }
    if input.isCompressed && InputFile.isCompressed(input.window) {
      throw CaptureError(.notACapture, "is compressed twice; decompress it once")
    }
    return .dump(try RawDump(input, options: options))
  }
  /// Opens a file if its first bytes say that it is a packet capture; `nil` when they do not.
  public static func openCapture(_ path: String, options: CaptureOptions) throws(CaptureError) -> CaptureFile? {
    var input = try InputFile.opening(path, blockLength: options.blockLength)
    _ = try input.fill(atLeast: 24)
    guard try CaptureFile.recognises(input.window, options: options) else { return nil }
    return try CaptureFile(input, options: options)
  }
}
