import Bytes
import Glibc

/// A file, a pipe or standard input, read in blocks, and decompressed if its first bytes are those of a compressed
/// file.
///
/// It exposes a window of contiguous bytes: `fill` widens the window, `consume` moves its start. Memory is one block,
/// or the longest contiguous piece that was requested.
struct InputFile: ~Copyable {
  private let blockLengthWanted: Int

  /// The path with which the file was opened; `-` is standard input.
  let path: String
  private let descriptor: Int32
  private var decompressor: (any Decompressor)?
  private var buffer: [UInt8]
  private var start = 0
  private var end = 0
  private var atEnd = false
  /// The longest time to wait for input of a pipe; `nil`: no limit.
  var patience: Duration?

  /// The size on disk in bytes; `nil` for pipes.
  let size: Int?
  /// The total time that reading has waited for a pipe. Time in which nobody reads is not silence of the writer.
  private(set) var waited = Duration.zero
  /// The number of bytes read from disk so far.
  private(set) var bytesRead = 0
  /// The offset of the window's start in the (decompressed) contents.
  private(set) var position = 0
  /// Set if compressed contents end early or are damaged. Earlier data is valid.
  private(set) var warning: String?
  /// Notes for the user about how the file is read, such as what it was unpacked from.
  private(set) var notes: [String] = []
  /// The most bytes that an archive may expand to.
  private let expandedLimit: Int

  /// Opens a file, or standard input for `-`.
  ///
  /// - Parameter blockLength: the number of bytes of one read.
  static func opening(
    _ path: String, blockLength: Int = CaptureOptions().blockLength,
    expandedLimit: Int = CaptureOptions().maximumExpandedLength
  ) throws(CaptureError) -> InputFile {
    let (descriptor, size) = try open(path)
    var file = InputFile(descriptor, path, size: size, blockLength, expandedLimit)
    try file.detectCompression()
    return file
  }

  private init(_ descriptor: Int32, _ path: String, size: Int?, _ blockLength: Int, _ expandedLimit: Int) {
    self.path = path
    self.expandedLimit = expandedLimit
    self.descriptor = descriptor
    self.size = size
    // A little more than a block, so that a record that the end of a block cuts does not shorten the next read.
    blockLengthWanted = blockLength + blockLength / 8
    buffer = [UInt8](repeating: 0, count: blockLengthWanted)
  }

  /// A file with contents that were made from another file; they are complete.
  init(contents: [UInt8], of path: String, size: Int?, bytesRead: Int, notes: [String]) {
    self.path = path
    self.size = size
    self.bytesRead = bytesRead
    self.notes = notes
    (descriptor, expandedLimit, blockLengthWanted) = (-1, 0, contents.count)
    buffer = contents
    end = contents.count
    atEnd = true
  }

  private static func open(_ path: String) throws(CaptureError) -> (descriptor: Int32, size: Int?) {
    let descriptor = path == "-" ? STDIN_FILENO : unsafe Glibc.open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw CaptureError(.cannotOpen, SystemError.text(errno)) }
    var status = stat()
    let result = unsafe fstat(descriptor, &status)
    let kind = status.st_mode & S_IFMT
    if result == 0 && kind != S_IFDIR { return (descriptor, kind == S_IFREG ? Int(status.st_size) : nil) }
    let problem = result == 0 ? "is a directory" : SystemError.text(errno)
    if descriptor != STDIN_FILENO { close(descriptor) }
    throw CaptureError(.cannotOpen, problem)
  }

  deinit { if descriptor > STDIN_FILENO { close(descriptor) } }

  mutating func note(_ note: String) { notes.append(note) }

  // MARK: the window

  var count: Int { end - start }

  var window: RawSpan {
    @_lifetime(borrow self)
    get { buffer.rawBytes.extracting(start..<end) }
  }

  /// The first bytes of the window, at most `count`.
  @_lifetime(borrow self)
  func beginning(upTo count: Int) -> RawSpan {
    buffer.rawBytes.extracting(start..<min(end, start + count))
  }

  /// The window with its offset in the block, for the next owner of the block.
  var blockWindow: BlockWindow {
    @_lifetime(borrow self)
    get { BlockWindow(window, at: start, blockLength: buffer.count) }
  }

  /// Passes the block to the caller and continues in `block`. The rest of the window, less than a record, is copied
  /// there.
  mutating func giveAway(_ block: inout [UInt8]) {
    let rest = start..<end
    let wanted = max(blockLengthWanted, rest.count)
    if block.count < wanted { block = [UInt8](repeating: 0, count: wanted) }
    // One by one: `replaceSubrange` would move all following bytes as well.
    for (place, index) in rest.enumerated() { block[place] = buffer[index] }
    swap(&block, &buffer)
    start = 0
    end = rest.count
  }

  mutating func consume(_ count: Int) {
    start += count
    position += count
  }

  /// The result of widening the window.
  enum Filling {
    case filled
    /// The contents end before the requested length.
    case ended
    /// No input came within `patience`.
    case quiet
  }

  /// Widens the window to at least `wanted` bytes. Returns `false` if the contents end before.
  ///
  /// - Throws: if the operating system fails to read.
  mutating func fill(atLeast wanted: Int) throws(CaptureError) -> Bool {
    while true {
      switch try fillPatiently(atLeast: wanted) {
      case .filled: return true
      case .ended: return false
      case .quiet: continue
      }
    }
  }

  /// Like `fill(atLeast:)`, but stops if no input comes within `patience`.
  mutating func fillPatiently(atLeast wanted: Int) throws(CaptureError) -> Filling {
    if count >= wanted { return .filled }
    if start > 0 {
      let (from, length) = (start, count)
      unsafe buffer.withUnsafeMutableBytes { memory in
        guard let base = memory.baseAddress else { return }
        // Safe: both ranges are within the buffer, and memmove allows them to overlap.
        _ = unsafe memmove(base, base + from, length)
      }
      end = length
      start = 0
    }
    while count < wanted && !atEnd {
      // By doubling: the requested length may be a limit far above the actual length.
      if end == buffer.count { buffer.append(contentsOf: repeatElement(0, count: min(wanted - end, buffer.count))) }
      if try !readMore() { return .quiet }
    }
    return count >= wanted ? .filled : .ended
  }

  /// Skips bytes without holding them. Returns `false` if the contents end before.
  mutating func skip(_ length: Int) throws(CaptureError) -> Bool {
    var left = length
    while left > 0 {
      guard try fill(atLeast: 1) else { return false }
      let step = min(left, count)
      consume(step)
      left -= step
    }
    return true
  }

  // MARK: reading

  /// Reads more bytes. Returns `false` if no input came within `patience`.
  private mutating func readMore() throws(CaptureError) -> Bool {
    if decompressor == nil {
      let began = ContinuousClock.now
      defer { if size == nil { waited += began.duration(to: .now) } }
      let input = awaitInput()
      if input == .quiet { return false }
      let read = input == .interrupted ? 0 : try Self.read(descriptor, into: &buffer, from: end)
      if read == 0 { atEnd = true }
      bytesRead += read
      end += read
      return true
    }
    do {
      while let decompressor {
        let made = try decompressor.decompress(into: &buffer, from: end)
        end += made
        if made > 0 { return true }
        if decompressor.readsItself {
          bytesRead = size ?? bytesRead
          atEnd = true
          return true
        }
        let began = ContinuousClock.now
        defer { if size == nil { waited += began.duration(to: .now) } }
        let input = awaitInput()
        if input == .quiet { return false }
        var block = [UInt8](repeating: 0, count: 1 << 18)
        let read = input == .interrupted ? 0 : try Self.read(descriptor, into: &block, from: 0)
        bytesRead += read
        if read == 0 {
          atEnd = true
          if !decompressor.isAtBoundary { warning = cutShort(decompressor) }
          return true
        }
        decompressor.supply(block, count: read)
      }
    } catch let error {
      guard error.kind == .damaged else { throw error }
      warning = error.message
      atEnd = true
    }
    return true
  }

  private enum Input { case ready, quiet, interrupted }

  /// Waits at most `patience` for input or its end.
  private func awaitInput() -> Input {
    guard let patience, size == nil else { return .ready }
    var request = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    let milliseconds = Int32(clamping: Int64(patience / .milliseconds(1)))
    switch unsafe poll(&request, 1, milliseconds) {
    case 0: return .quiet
    // As with a read: a signal whose handler interrupts system calls.
    case -1 where errno == EINTR: return .interrupted
    // A descriptor that cannot be polled can be read.
    default: return .ready
    }
  }

  private func cutShort(_ decompressor: some Decompressor) -> String {
    "the \(type(of: decompressor).name) contents are cut short: the file ends within them, after \(bytesRead) bytes"
  }

  /// Reads into the free space of the block after `start`. Returns the number of bytes; 0 at the end of the file.
  private static func read(
    _ descriptor: Int32, into block: inout [UInt8], from start: Int
  ) throws(CaptureError) -> Int {
    let count = unsafe block.withUnsafeMutableBytes { memory in
      guard let base = memory.baseAddress, memory.count > start else { return 0 }
      // Safe: start..<memory.count is within the block.
      let count = unsafe Glibc.read(descriptor, base + start, memory.count - start)
      // Interrupted by a signal whose handler interrupts system calls: the input ends here.
      return count < 0 && errno == EINTR ? 0 : count
    }
    guard count >= 0 else { throw CaptureError(.readFailed, SystemError.text(errno)) }
    return count
  }

  var isCompressed: Bool { decompressor != nil }

  private enum Compression { case gzip, zstd }

  private static func compression(of bytes: RawSpan) -> Compression? {
    guard bytes.byteCount >= 4 else { return nil }
    let magic = bytes.uint32(at: 0)
    return magic >> 16 == 0x1f8b ? .gzip : magic == 0x28b5_2ffd ? .zstd : nil
  }

  static func isCompressed(_ bytes: RawSpan) -> Bool { compression(of: bytes) != nil }

  /// Continues with the unpacked contents of the archive, from their beginning.
  mutating func unpack() throws(CaptureError) {
    guard size != nil || decompressor == nil else {
      throw CaptureError(.notACapture, "is a compressed archive in a pipe; unpack it first, or give the file")
    }
    let stream = try ArchiveStream(
      descriptor, isFile: size != nil, beginning: size == nil ? Array(copying: window) : [], limit: expandedLimit
    ) { (try? CaptureFile.recognises($0, options: CaptureOptions())) ?? true }
    notes.append(stream.note)
    decompressor = StreamDecompressor(stream)
    start = 0
    end = 0
    position = 0
    atEnd = false
  }

  private mutating func detectCompression() throws(CaptureError) {
    while count < 13 && !atEnd { _ = try readMore() }
    if ArchiveStream.recognises(window) { return try unpack() }
    switch Self.compression(of: window) {
    case .gzip: decompressor = StreamDecompressor(try GzipStream())
    case .zstd: decompressor = StreamDecompressor(try ZstdStream())
    case nil: return
    }
    if let decompressor {
      decompressor.supply(Array(copying: window), count: count)
      start = 0
      end = 0
      atEnd = false
    }
  }
}
