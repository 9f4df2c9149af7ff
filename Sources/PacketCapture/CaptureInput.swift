import Bytes

/// An opened input: a packet capture, or the bytes of one direction; detected from the content.
public enum CaptureInput: ~Copyable {
  /// A packet capture.
  case packets(CaptureFile)
  /// The bytes of one direction of a connection, in binary or as text.
  case dump(RawDump)

  /// The longest text before a capture, in bytes: output of another program that was written to the same file.
  private static let longestPreface = 1_024

  /// Opens a file, or standard input for `-`, and detects its content.
  ///
  /// Archives and compressed files are unpacked. Text that shows packets (of tcpdump or tshark), or the bytes of a
  /// capture file, is opened as a capture. Anything that is not a capture is a dump.
  ///
  /// - Parameters:
  ///   - path: the path of the file; `-` is standard input.
  ///   - options: limits on what is read.
  /// - Throws: a `CaptureError` if the file cannot be opened or read, is empty, or has a damaged header.
  public static func open(_ path: String, options: CaptureOptions) throws(CaptureError) -> CaptureInput {
    var input = try InputFile.opening(
      path, blockLength: options.blockLength, expandedLimit: options.maximumExpandedLength)
    guard try input.fill(atLeast: 1) else {
      // A damaged compressed block yields no bytes at all.
      throw CaptureError(.notACapture, input.warning.map { "\($0), and nothing can be decompressed" } ?? "is empty")
    }
    if try findCapture(&input, options: options) { return .packets(try CaptureFile(input, options: options)) }
    if input.isCompressed && InputFile.isCompressed(input.window) {
      throw CaptureError(.notACapture, "is compressed twice; decompress it once")
    }
    let advice = ForeignFile.advice(input.window)
    let dump = try RawDump(input, options: options)
    if let advice, dump.format == .raw { throw CaptureError(.notACapture, advice) }
    // The text of a dump may show the bytes of a capture file.
    guard dump.showsCapture(options) else { return .dump(dump) }
    return .packets(try CaptureFile(dump.asFile(), options: options))
  }

  /// Opens a file if it is a packet capture, like `open(_:options:)`.
  ///
  /// - Returns: the capture; `nil` if the content is no capture.
  /// - Throws: a `CaptureError` if the file cannot be opened or read, or has a damaged header.
  public static func openCapture(_ path: String, options: CaptureOptions) throws(CaptureError) -> CaptureFile? {
    var input = try InputFile.opening(
      path, blockLength: options.blockLength, expandedLimit: options.maximumExpandedLength)
    guard try findCapture(&input, options: options) else {
      let dump = try RawDump(input, options: options)
      return dump.showsCapture(options) ? try CaptureFile(dump.asFile(), options: options) : nil
    }
    return try CaptureFile(input, options: options)
  }

  /// Advances to the beginning of a capture: in an archive, after text, or made from packets that text shows.
  private static func findCapture(_ input: inout InputFile, options: CaptureOptions) throws(CaptureError) -> Bool {
    _ = try input.fill(atLeast: 24)
    if try CaptureFile.recognises(input.window, options: options) { return true }
    // 64 KiB are enough to see whether it is text: in binary protocols a byte that is not text soon appears, if not
    // within the first dozen.
    _ = try input.fill(atLeast: 1 << 16)
    if ArchiveStream.isTar(input.window) {
      try input.unpack()
      _ = try input.fill(atLeast: 24)
      if try CaptureFile.recognises(input.window, options: options) { return true }
      _ = try input.fill(atLeast: 1 << 16)
    }
    if let start = beginning(input.window, options) {
      input.note("begins with \(start) bytes of text, which were passed over")
      input.consume(start)
      return true
    }
    guard let text = PastedText.utf8(input.beginning(upTo: 1 << 16)), let kind = PastedPackets.Kind(text) else {
      return false
    }
    let limit = options.maximumHexDumpLength
    let fits = try !input.fill(atLeast: limit + 1)
    guard let whole = PastedText.utf8(input.beginning(upTo: limit)),
      let packets = PastedPackets(whole, kind)
    else { return false }
    var notes = input.notes
    notes.append("is text of \(kind.name), of which the packets are read")
    if !fits { notes.append("exceeds the limit of \(limit) bytes (--max-hex-dump-length); the rest was not read") }
    input = InputFile(
      contents: packets.capture, of: input.path, size: input.size, bytesRead: input.bytesRead, notes: notes)
    return true
  }

  /// The offset of a capture that follows text; `nil` without one.
  private static func beginning(_ bytes: RawSpan, _ options: CaptureOptions) -> Int? {
    for start in 0..<min(longestPreface, bytes.byteCount) {
      let byte = bytes.byte(at: start)
      if start > 0, byte == 0xd4 || byte == 0xa1 || byte == 0x4d || byte == 0x34 || byte == 0x0a || byte == 0x73 {
        let rest = bytes.extracting(start..<min(bytes.byteCount, start + 28))
        if rest.byteCount >= 24, isHeader(rest), (try? CaptureFile.recognises(rest, options: options)) == true {
          return start
        }
      }
      guard PastedText.isText(byte) else { return nil }
    }
    return nil
  }

  /// Whether a header begins here. Checks more than the first four bytes, because text may contain those by chance.
  private static func isHeader(_ bytes: RawSpan) -> Bool {
    if PcapngParser.matches(bytes) {
      return bytes.uint32(at: 8) == 0x1a2b_3c4d || bytes.uint32(at: 8, bigEndian: false) == 0x1a2b_3c4d
    }
    // Version 2.4 in either byte order; snoop has its name instead.
    return bytes.uint32(at: 4) == 0x0002_0004 || bytes.uint32(at: 4, bigEndian: false) == 0x0004_0002
      || bytes.begins(with: Array("snoop\0\0\0".utf8))
  }
}
