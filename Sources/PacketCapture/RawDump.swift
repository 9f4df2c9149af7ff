import Bytes

/// One direction of a connection in a file: binary as it was on the wire, or a hex dump of it.
///
/// Hex dumps are distinguished from binary by their text: `xxd`, `hexdump -C`, or plain hexadecimal digits. They are
/// decoded whole, up to `CaptureOptions.maximumHexDumpLength`; binary dumps are read in blocks.
public struct RawDump: ~Copyable {
  private var input: InputFile
  private let decoded: [UInt8]
  public let format: CaptureFormat
  public private(set) var warnings: [String] = []
  public var size: Int? { input.size }
  public var bytesRead: Int { input.bytesRead }

  init(_ input: consuming InputFile, options: CaptureOptions) throws(CaptureError) {
    // 64 KiB are enough to see whether it is text; binary protocols show a byte that is not in the first dozen.
    _ = try input.fill(atLeast: 1 << 16)
    if HexDump.looksLikeHex(input.window) {
      let fits = try !input.fill(atLeast: options.maximumHexDumpLength + 1)
      let limit = options.maximumHexDumpLength
      let dump = HexDump(parsing: input.window.extracting(0..<min(input.count, limit)), maximumLength: limit)
      decoded = dump.bytes
      format = .hex
      if !fits {
        warnings.append("the hex dump exceeds the limit of \(limit) bytes; the rest was not read")
      }
      if let line = dump.firstBadLine {
        warnings.append("line \(line) is not part of a hex dump; \(dump.badLines) such lines were skipped")
      }
      if let warning = input.warning { warnings.append(warning) }
    } else {
      decoded = []
      format = .raw
    }
    self.input = input
  }

  public var isEmpty: Bool { format == .hex ? decoded.isEmpty : input.count == 0 }

  /// The first bytes of the stream, up to a block: enough to tell what kind of stream it is.
  public var beginning: RawSpan {
    @_lifetime(borrow self)
    get { format == .hex ? decoded.rawBytes : input.window }
  }

  /// Calls `body` with the stream, piece by piece, until it ends or `body` returns `false`.
  public mutating func forEachPiece(_ body: (RawSpan, _ bytesRead: Int) throws -> Bool) throws {
    if format == .hex {
      _ = try body(decoded.rawBytes, input.bytesRead)
      return
    }
    while try input.fill(atLeast: 1) {
      let length = input.count
      let bytesRead = input.bytesRead
      if try !body(input.window, bytesRead) { return }
      input.consume(length)
    }
    if let warning = input.warning { warnings.append(warning) }
  }
}
