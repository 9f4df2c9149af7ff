import Bytes

/// The bytes of one direction of a connection, from a file with the bytes themselves or with text that shows them.
///
/// Text is recognised by its content: hex dumps of `xxd`, `hexdump` and `od`, plain hexadecimal digits, and byte
/// strings as programming languages print them (`PastedBytes`). Text is decoded as a whole, up to
/// `CaptureOptions.maximumHexDumpLength`; binary dumps are read in blocks.
public struct RawDump: ~Copyable {
  private var input: InputFile
  private let decoded: [UInt8]
  /// Whether the bytes were in the file (`raw`) or shown as text (`hex`).
  public let format: CaptureFormat
  /// The problems of the file, for the user; for a binary dump complete once it was read to its end.
  public private(set) var warnings: [String] = []
  /// Notes for the user about how the file is read, such as that an archive was unpacked.
  public var notes: [String] { input.notes }
  /// The size on disk in bytes; `nil` for a pipe.
  public var size: Int? { input.size }
  /// The number of bytes read from disk so far.
  public var bytesRead: Int { input.bytesRead }

  init(_ input: consuming InputFile, options: CaptureOptions) throws(CaptureError) {
    // 64 KiB are enough to see whether it is text: in binary protocols a byte that is not text soon appears, if not
    // within the first dozen.
    _ = try input.fill(atLeast: 1 << 16)
    let limit = options.maximumHexDumpLength
    let isHex =
      HexDump.looksLikeHex(input.window)
      && !(PastedText.utf8(input.beginning(upTo: 1 << 10)).map(PastedBytes.hasShortOffsets) ?? false)
    if isHex
      || PastedText.utf8(input.beginning(upTo: 1 << 16)).flatMap({ PastedBytes($0, maximumLength: limit) }) != nil
    {
      let fits = try !input.fill(atLeast: limit + 1)
      format = .hex
      if isHex {
        let dump = HexDump(parsing: input.beginning(upTo: limit), maximumLength: limit)
        decoded = dump.bytes
        if let line = dump.firstBadLine {
          warnings.append("line \(line) is not part of a hex dump; \(dump.badLines) such lines were skipped")
        }
      } else {
        let pasted = PastedText.utf8(input.beginning(upTo: limit)).flatMap { PastedBytes($0, maximumLength: limit) }
        decoded = pasted?.bytes ?? []
        if pasted?.isCut == true { warnings.append("the program that printed the bytes has left some out") }
      }
      if !fits { warnings.append("the hex dump exceeds the limit of \(limit) bytes; the rest was not read") }
      if let warning = input.warning { warnings.append(warning) }
    } else {
      decoded = []
      format = .raw
    }
    self.input = input
  }

  /// Whether there are no bytes.
  public var isEmpty: Bool { format == .hex ? decoded.isEmpty : input.count == 0 }

  /// The first bytes of the stream, up to a block: enough to detect the protocol.
  public var beginning: RawSpan {
    @_lifetime(borrow self)
    get { format == .hex ? decoded.rawBytes : input.window }
  }

  /// The first bytes of the file, at most `CaptureError.keptLength`; for a dump as text, the text.
  package var beginningOfFile: [UInt8] {
    Array(copying: input.beginning(upTo: CaptureError.keptLength))
  }

  /// Whether the text shows the bytes of a capture file.
  func showsCapture(_ options: CaptureOptions) -> Bool {
    format == .hex && decoded.count >= 24 && (try? CaptureFile.recognises(decoded.rawBytes, options: options)) == true
  }

  /// The bytes that the text shows, as a file.
  consuming func asFile() -> InputFile {
    InputFile(
      contents: decoded, of: input.path, size: input.size, bytesRead: input.bytesRead,
      notes: input.notes + ["is text that shows a capture file, which is read"] + warnings)
  }

  /// Calls `body` with the stream, piece by piece, until it ends or `body` returns `false`.
  ///
  /// Each piece is borrowed for the call. A dump as text is one piece.
  ///
  /// - Throws: a `CaptureError` of kind `readFailed` if the operating system fails to read; and what `body` throws.
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
