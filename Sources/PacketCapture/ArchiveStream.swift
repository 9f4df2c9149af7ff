import CArchive

/// A capture in an archive (zip, tar, 7-Zip) or compressed with bzip2, xz or lzip, through libarchive, which reads the
/// file itself.
///
/// Of several files in an archive the first capture is read; where there is none, the first file.
struct ArchiveStream: ~Copyable, DecompressionStream {
  static let name = "archive"
  static var readsItself: Bool { true }

  /// Files of an archive that are looked at to find a capture.
  private static let mostEntries = 10_000

  private let archive: OpenArchive
  private let limit: Int
  private var made = 0
  let isAtBoundary = true
  /// What is read, in words.
  let note: String

  /// Opens the archive at a descriptor, and goes to the file that is read.
  ///
  /// - Parameters:
  ///   - beginning: what was taken from a pipe; a file is read from its beginning.
  ///   - limit: bytes that it may expand to.
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
    // From the beginning again.
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

  /// The number of the file to read, from 0, and how many captures there are; the first file is open.
  private static func place(
    _ archive: borrowing OpenArchive, _ isCapture: (RawSpan) -> Bool
  ) throws(CaptureError) -> (place: Int, captures: Int) {
    var (number, found, captures) = (0, Int?.none, 0)
    while true {
      var beginning = [UInt8](repeating: 0, count: 24)
      var count = 0
      while count < beginning.count {
        // A damaged file is no capture, and others may follow it.
        guard let read = try? archive.read(into: &beginning, from: count, most: 24), read > 0 else { break }
        count += read
      }
      if isCapture(beginning.rawBytes.extracting(0..<count)) {
        captures += 1
        found = found ?? number
      }
      number += 1
      guard number < mostEntries, try archive.next() != nil else { return (found ?? 0, captures) }
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

  /// Whether a file that begins with these bytes is one of them; tar is told by `isTar`.
  static func recognises(_ bytes: RawSpan) -> Bool {
    let magics: [[UInt8]] = [
      [0x50, 0x4b, 3, 4], [0x50, 0x4b, 5, 6], [0xfd, 0x37, 0x7a, 0x58, 0x5a, 0], [0x37, 0x7a, 0xbc, 0xaf, 0x27, 0x1c],
      Array("LZIP".utf8),
    ]
    if magics.contains(where: { bytes.begins(with: $0) }) { return true }
    // LZMA without a container: properties, the size of the dictionary, a length that is not known.
    if bytes.begins(with: [0x5d, 0, 0]), bytes.byteCount >= 13, bytes.uint64(at: 5) == .max { return true }
    // BZh, the size of a block, and the beginning of pi.
    return bytes.begins(with: Array("BZh".utf8)) && bytes.byteCount >= 5 && (0x31...0x39).contains(bytes.byte(at: 3))
      && (bytes.byte(at: 4) == 0x31 || bytes.byte(at: 4) == 0x17)
  }

  /// A tar archive has its mark at byte 257.
  static func isTar(_ bytes: RawSpan) -> Bool {
    bytes.byteCount >= 512 && bytes.extracting(257..<262).begins(with: Array("ustar".utf8))
  }
}

/// An archive as libarchive reads it, from its beginning to its end.
@safe private struct OpenArchive: ~Copyable {
  /// Entries that are passed over at a time: folders and what macOS adds.
  private static let mostPassed = 10_000

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

  /// It is a compressed file and no archive.
  var isOneFile: Bool { unsafe archive_format(archive) == ARCHIVE_FORMAT_RAW }

  /// What compresses the whole, as bzip2; "none".
  var filter: String {
    guard let name = unsafe archive_filter_name(archive, 0) else { return "none" }
    return unsafe String(cString: name)
  }

  /// As people call it.
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

  /// Goes to the next file, and returns its name; `nil` at the end. Folders and what macOS adds are passed over.
  func next() throws(CaptureError) -> String? {
    for _ in 0..<Self.mostPassed {
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

  /// Reads from the file; 0 at its end.
  func read(into output: inout [UInt8], from offset: Int, most: Int) throws(CaptureError) -> Int {
    let count = unsafe output.withUnsafeMutableBytes { memory in
      guard let base = memory.baseAddress, memory.count > offset else { return 0 }
      // Safe: offset..<memory.count lies in the block.
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
