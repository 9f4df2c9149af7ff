import CArchive

/// A capture in an archive (zip, tar, 7-Zip) or compressed with bzip2, xz or lzip, read with libarchive, which reads
/// the file itself.
///
/// If an archive has several files, the first capture is read; if none is a capture, the first file.
struct ArchiveStream: ~Copyable, DecompressionStream {
  static let name = "archive"
  static var readsItself: Bool { true }

  /// The most entries of an archive that are searched for a capture.
  private static let maximumEntries = 10_000

  private let archive: OpenArchive
  private let limit: Int
  private var made = 0
  let isAtBoundary = true
  /// A description of the archive and of what is read of it, for the user.
  let note: String

  /// Opens the archive at a descriptor, and advances to the file that is read.
  ///
  /// - Parameters:
  ///   - beginning: the bytes already read from a pipe; a file is read from its beginning.
  ///   - limit: the most bytes that the archive may expand to.
  ///   - isCapture: whether a file that begins with these bytes is a capture.
  init(
    _ descriptor: Int32, isFile: Bool, beginning: [UInt8], limit: Int, isCapture: (RawSpan) -> Bool
  ) throws(CaptureError) {
    self.limit = limit
    let first = try OpenArchive(descriptor, isFile: isFile, beginning: beginning)
    guard var name = try first.next() else { throw CaptureError(.notACapture, "is an empty archive") }
    guard !first.isOneFile else {
      note = "is compressed with \(first.filter), and was unpacked"
      archive = first
      return
    }
    let kind = first.kind
    guard isFile else {
      note = "is a \(kind) archive, of which \(name) is read"
      archive = first
      return
    }
    let (place, captures) = try Self.place(first, isCapture)
    // Reopen: libarchive reads an archive only forward.
    let second = try OpenArchive(descriptor, isFile: true, beginning: [])
    for _ in 0...place {
      guard let next = try second.next() else { throw CaptureError(.damaged, "the archive has changed") }
      name = next
    }
    let others = max(0, captures - 1)
    let more = others > 0 ? "; \(others) more \(others == 1 ? "capture" : "captures") in it not" : ""
    note = "is a \(kind) archive, of which \(name) is read\(more)"
    archive = second
  }

  /// The index of the file to read, from 0, and the number of captures. The archive is at its first file.
  private static func place(
    _ archive: borrowing OpenArchive, _ isCapture: (RawSpan) -> Bool
  ) throws(CaptureError) -> (place: Int, captures: Int) {
    var (number, found, captures) = (0, Int?.none, 0)
    while true {
      var beginning = [UInt8](repeating: 0, count: 24)
      var count = 0
      while count < beginning.count {
        // An entry that cannot be read is no capture, but a capture may follow it.
        guard let read = try? archive.read(into: &beginning, from: count, most: 24), read > 0 else { break }
        count += read
      }
      if isCapture(beginning.rawBytes.extracting(0..<count)) {
        captures += 1
        found = found ?? number
      }
      number += 1
      guard number < maximumEntries, try archive.next() != nil else { return (found ?? 0, captures) }
    }
  }

  mutating func supply(_ block: [UInt8], count: Int) {}

  mutating func decompress(into output: inout [UInt8], from offset: Int) throws(CaptureError) -> Int {
    guard made < limit else {
      throw CaptureError(.damaged, "expands to more than \(limit) bytes (--max-expanded-length); the rest was not read")
    }
    let count = try archive.read(into: &output, from: offset, most: limit - made)
    made += count
    return count
  }

  // MARK: recognition

  /// Whether a file that begins with these bytes has one of these formats; `isTar` recognises tar.
  static func recognises(_ bytes: RawSpan) -> Bool {
    let magics: [[UInt8]] = [
      [0x50, 0x4b, 3, 4], [0x50, 0x4b, 5, 6], [0xfd, 0x37, 0x7a, 0x58, 0x5a, 0], [0x37, 0x7a, 0xbc, 0xaf, 0x27, 0x1c],
      Array("LZIP".utf8),
    ]
    if magics.contains(where: { bytes.begins(with: $0) }) { return true }
    // LZMA without a container: properties, dictionary size, and a length of −1, which means unknown.
    if bytes.begins(with: [0x5d, 0, 0]), bytes.byteCount >= 13, bytes.uint64(at: 5) == .max { return true }
    // bzip2: `BZh`, the block size, then the block magic (the digits of π) or the end-of-stream magic (those of √π).
    return bytes.begins(with: Array("BZh".utf8)) && bytes.byteCount >= 5 && (0x31...0x39).contains(bytes.byte(at: 3))
      && (bytes.byte(at: 4) == 0x31 || bytes.byte(at: 4) == 0x17)
  }

  /// Whether the bytes begin a tar archive, whose magic is at offset 257.
  static func isTar(_ bytes: RawSpan) -> Bool {
    bytes.byteCount >= 512 && bytes.extracting(257..<262).begins(with: Array("ustar".utf8))
  }
}

/// An archive opened with libarchive, which reads it from beginning to end.
@safe private struct OpenArchive: ~Copyable {
  /// The most entries that are skipped in a row: folders, and the metadata files that macOS adds.
  private static let maximumPassed = 10_000

  // Safe: made in init, freed in deinit, never handed out.
  private let archive: OpaquePointer

  init(_ descriptor: Int32, isFile: Bool, beginning: [UInt8]) throws(CaptureError) {
    var status = ARCHIVE_OK
    let opened = unsafe beginning.withUnsafeBytes { bytes in
      // Safe: the shim copies the bytes.
      unsafe apnscope_archive_open(descriptor, isFile ? 1 : 0, bytes.baseAddress, bytes.count, &status)
    }
    guard let archive = unsafe opened else { throw CaptureError(.readFailed, "libarchive does not start") }
    guard status == ARCHIVE_OK else {
      let problem = unsafe Self.problem(archive)
      unsafe _ = archive_read_free(archive)
      throw CaptureError(.notACapture, "cannot be unpacked: \(problem)")
    }
    unsafe self.archive = archive
  }

  deinit { unsafe _ = archive_read_free(archive) }

  private var problem: String { unsafe Self.problem(archive) }

  private static func problem(_ archive: OpaquePointer) -> String {
    guard let text = unsafe archive_error_string(archive) else { return "it is damaged" }
    return unsafe String(cString: text)
  }

  /// Whether the file is compressed but not an archive.
  var isOneFile: Bool { unsafe archive_format(archive) == ARCHIVE_FORMAT_RAW }

  /// The name of the compression of the whole archive, such as `bzip2`; `none` without.
  var filter: String {
    guard let name = unsafe archive_filter_name(archive, 0) else { return "none" }
    return unsafe String(cString: name)
  }

  /// The common name of the format, with the compression if there is one.
  var kind: String {
    let kind =
      switch unsafe archive_format(archive) & ARCHIVE_FORMAT_BASE_MASK {
      case ARCHIVE_FORMAT_ZIP: "zip"
      case ARCHIVE_FORMAT_TAR: "tar"
      case ARCHIVE_FORMAT_7ZIP: "7-Zip"
      default: "packed"
      }
    return filter == "none" ? kind : "\(kind) (\(filter))"
  }

  /// Advances to the next file and returns its name; `nil` at the end. Folders and the metadata files of macOS are
  /// skipped.
  func next() throws(CaptureError) -> String? {
    for _ in 0..<Self.maximumPassed {
      var entry: OpaquePointer?
      let status = unsafe archive_read_next_header(archive, &entry)
      if status == ARCHIVE_EOF { return nil }
      guard status >= ARCHIVE_WARN, let entry = unsafe entry else {
        throw CaptureError(.notACapture, "cannot be unpacked: \(problem)")
      }
      guard unsafe archive_entry_filetype(entry) & 0o170000 == 0o100000 else { continue }
      let name = unsafe archive_entry_pathname(entry).map { unsafe String(cString: $0) } ?? "a file without a name"
      let last = name.split(separator: "/").last ?? ""
      if last.hasPrefix(".") || name.hasPrefix("__MACOSX/") { continue }
      if unsafe archive_entry_is_encrypted(entry) != 0 {
        throw CaptureError(.notACapture, "is an archive with a password: \(name) is encrypted; unpack it first")
      }
      return name
    }
    return nil
  }

  /// Reads from the current file. Returns the number of bytes; 0 at the end of the file.
  func read(into output: inout [UInt8], from offset: Int, most: Int) throws(CaptureError) -> Int {
    let count = unsafe output.withUnsafeMutableBytes { memory in
      guard let base = memory.baseAddress, memory.count > offset else { return 0 }
      // Safe: offset..<memory.count is within the block.
      return unsafe archive_read_data(archive, base + offset, min(memory.count - offset, most))
    }
    guard count >= 0 else { throw CaptureError(.damaged, "the archive is damaged: \(problem)") }
    return count
  }
}

extension RawSpan {
  func begins(with magic: [UInt8]) -> Bool {
    byteCount >= magic.count && magic.indices.allSatisfy { byte(at: $0) == magic[$0] }
  }
}
