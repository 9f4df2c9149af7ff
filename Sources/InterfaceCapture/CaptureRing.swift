import Bytes
import CommandFiles
import FoundationEssentials
import Glibc
import PacketCapture

/// The ring of files that a live capture is written to.
///
/// Each file can be read without the others: it begins with section header, interfaces and the secrets used so far, and
/// has complete blocks only, even after a full disk.
package struct CaptureRing {
  package struct Options: Sendable {
    package var folder: String
    /// Files in the folder, those of earlier runs on the interface among them.
    package var files: Int
    /// Bytes that a file does not exceed, unless a single packet does.
    package var size: Int

    package init(folder: String, files: Int, size: Int) {
      (self.folder, self.files, self.size) = (folder, files, size)
    }
  }

  /// Secrets that are repeated in each file; the oldest are left out above this.
  private static let maximumSecretsLength = 1 << 20
  private static let suffix = ".pcapng"

  private let options: Options
  private let prefix: String
  private var blocks: BlockStream
  /// Section header and interfaces.
  private var header: [UInt8] = []
  private var secrets: [UInt8] = []
  /// The files of the ring, the oldest first, including those of earlier runs.
  private var names: [String] = []
  private var number = 0
  private var descriptor: Int32 = -1
  /// The length of the open file in bytes, including those in `unwritten`.
  private var length = 0
  private var unwritten: [UInt8] = []
  /// The ends of blocks in `unwritten`, as offsets.
  private var ends: [Int] = []
  private var hasPackets = false

  /// Makes the folder if it does not exist.
  init(_ options: Options, interface: String, maximumBlockLength: Int) throws(FileFailure) {
    self.options = options
    var name = ""
    for character in interface.unicodeScalars {
      name.unicodeScalars.append(
        character.isASCII && character.properties.isAlphabetic
          ? character : character.value >= 48 && character.value <= 57 ? character : "_")
    }
    prefix = "\(name)-\(Int(Date().timeIntervalSince1970 * 1_000))"
    blocks = BlockStream(maximumBlockLength: maximumBlockLength)
    if unsafe mkdir(options.folder, 0o700) != 0, errno != EEXIST {
      throw Self.failure(options.folder)
    }
    // An error before the capture begins.
    guard Paths.isDirectory(options.folder) else {
      throw FileFailure(.writeFailed, options.folder, "not a folder")
    }
    guard unsafe access(options.folder, W_OK | X_OK) == 0 else { throw Self.failure(options.folder) }
    names = Self.earlier(name, in: options.folder)
  }

  /// The paths of files that earlier runs wrote for an interface, the oldest first.
  private static func earlier(_ interface: String, in folder: String) -> [String] {
    let all = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
    let files = all.compactMap { file -> (time: Int, number: Int, path: String)? in
      guard file.hasPrefix(interface + "-"), file.hasSuffix(suffix) else { return nil }
      let parts = file.dropFirst(interface.count + 1).dropLast(suffix.count).split(
        separator: "-", omittingEmptySubsequences: false)
      guard parts.count == 2, let time = Int(parts[0]), let number = Int(parts[1]), time > 0, number > 0 else {
        return nil
      }
      return (time, number, Paths.path(of: file, in: folder))
    }
    return files.sorted { ($0.time, $0.number) < ($1.time, $1.number) }.map(\.path)
  }

  private static func failure(_ name: String) -> FileFailure {
    FileFailure(.writeFailed, name, SystemError.text(errno))
  }

  /// Adds the next bytes of the capture.
  mutating func take(_ bytes: RawSpan) throws {
    var complete: [(kind: BlockStream.Kind, bytes: [UInt8])] = []
    try blocks.take(bytes) { kind, block in complete.append((kind, Array(copying: block))) }
    for block in complete { try take(block.kind, block.bytes) }
    try write()
  }

  /// Adds lines of a key log.
  mutating func add(secrets lines: [UInt8]) throws {
    secrets += lines
    if secrets.count > Self.maximumSecretsLength {
      let cut = secrets.count - Self.maximumSecretsLength
      let end = secrets[cut...].firstIndex(of: 0x0a).map { $0 + 1 } ?? secrets.count
      secrets.removeFirst(end)
    }
    guard descriptor >= 0 else { return }
    append(PcapngBlock.secrets(lines))
    try write()
  }

  /// Writes what is left and closes the file.
  mutating func end() throws {
    defer { close() }
    try write()
  }

  mutating func close() {
    if descriptor >= 0 { Glibc.close(descriptor) }
    descriptor = -1
  }

  // MARK: blocks

  private mutating func take(_ kind: BlockStream.Kind, _ block: [UInt8]) throws {
    switch kind {
    case .section:
      try write()
      close()
      header = block
    case .interface:
      header += block
      if descriptor >= 0 { append(block) }
    case .packet:
      if descriptor < 0 || hasPackets && length + block.count > options.size { try begin() }
      append(block)
      hasPackets = true
    case .other:
      if descriptor < 0 { try begin() }
      append(block)
    }
  }

  private mutating func append(_ block: [UInt8]) {
    unwritten += block
    ends.append(unwritten.count)
    length += block.count
  }

  /// Begins the next file, and deletes the oldest when there are too many.
  private mutating func begin() throws(FileFailure) {
    try write()
    close()
    number += 1
    let digits = String(number)
    let name = Paths.path(
      of: "\(prefix)-\(String(repeating: "0", count: max(0, 5 - digits.count)))\(digits)\(Self.suffix)",
      in: options.folder)
    descriptor = unsafe open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw Self.failure(name) }
    names.append(name)
    // Files that were deleted by others meanwhile are gone already.
    while names.count > options.files { _ = unsafe unlink(names.removeFirst()) }
    length = 0
    hasPackets = false
    append(header)
    if !secrets.isEmpty { append(PcapngBlock.secrets(secrets)) }
  }

  private mutating func write() throws(FileFailure) {
    guard !unwritten.isEmpty, descriptor >= 0 else { return }
    defer {
      unwritten.removeAll(keepingCapacity: true)
      ends.removeAll(keepingCapacity: true)
    }
    var offset = 0
    while offset < unwritten.count {
      // Safe: the range lies in the array.
      let count = unsafe unwritten.withUnsafeBytes {
        unsafe Glibc.write(descriptor, $0.baseAddress.map { unsafe $0 + offset }, $0.count - offset)
      }
      if count < 0, errno == EINTR { continue }
      if count <= 0 {
        let failure = Self.failure(names.last ?? options.folder)
        // Part of a block would damage the file.
        let whole = ends.last { $0 <= offset } ?? 0
        _ = ftruncate(descriptor, off_t(length - unwritten.count + whole))
        close()
        throw failure
      }
      offset += count
    }
  }
}
