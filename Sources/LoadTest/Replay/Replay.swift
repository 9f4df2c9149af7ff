import Bytes
import Glibc

/// The notifications of a decoded trace, to be sent in the order of their times.
///
/// The frames are in a file without a name, which is mapped into memory, so that a trace takes 16 bytes of memory for
/// each notification. Number n is the n-th notification in the order of times; the order within a connection is kept.
public final class Replay: Sendable {
  /// The place of a notification's frame, and the time of its writing.
  struct Entry: Sendable {
    /// In the file.
    var offset: Int
    /// Nanoseconds since the first.
    var time: Int64
  }

  /// The header of a frame in the file: its length, then the offset of its identifier (0: none) with a bit for a
  /// missing token.
  static let headerLength = 8
  static let missingTokenBit: UInt32 = 1 << 31

  private let entries: [Entry]
  private let frames: MappedFile
  /// The number of records other than notifications.
  public let skippedRecords: Int
  /// Some have a token that is not 32 bytes long.
  let hasUnusualTokenSizes: Bool

  init(
    _ entries: [Entry], _ frames: consuming MappedFile, skippedRecords: Int, hasUnusualTokenSizes: Bool
  ) {
    self.entries = entries
    self.frames = frames
    self.skippedRecords = skippedRecords
    self.hasUnusualTokenSizes = hasUnusualTokenSizes
  }

  /// The number of notifications.
  public var count: Int { entries.count }
  /// The recorded time from the first notification to the last; 0 if the records have no times.
  public var length: Duration { .nanoseconds(entries.last?.time ?? 0) }

  /// Nanoseconds from the first notification to this one, as recorded.
  func time(of number: Int) -> Int64 { entries[number].time }

  func isMissingToken(_ number: Int) -> Bool {
    frames.word(at: entries[number].offset + 4) & Self.missingTokenBit != 0
  }

  /// Writes the notification's frame as it was recorded, except for the identifier, if the frame has one.
  func encode(_ number: Int, identifier: UInt32, into output: inout ByteWriter) {
    let header = entries[number].offset
    let start = header + Self.headerLength
    let end = start + Int(frames.word(at: header))
    let identifierOffset = Int(frames.word(at: header + 4) & ~Self.missingTokenBit)
    guard identifierOffset > 0 else { return frames.write(start..<end, into: &output) }
    frames.write(start..<start + identifierOffset, into: &output)
    output.write(bigEndian: identifier)
    frames.write(start + identifierOffset + 4..<end, into: &output)
  }
}

/// A file without a name, mapped into memory to be read.
///
/// `@unchecked Sendable` is valid because no code writes. The interleavings that were looked at:
/// - Two loops read the same frames or different ones: the mapping is read-only, and address and length are constants.
/// - A loop reads while another thread releases the file: the value cannot be copied. It is part of `Replay`, to which
///   every loop has a reference, so `deinit` unmaps after the last read.
/// - Another process truncates the file, which would be a bus error: the file has no name, and its descriptor is
///   closed.
@safe struct MappedFile: ~Copyable, @unchecked Sendable {
  private let pointer: UnsafeMutableRawPointer
  private let count: Int

  /// - Parameters:
  ///   - descriptor: of a private file; may be closed afterwards.
  ///   - count: its length, which is not 0.
  init(_ descriptor: Int32, count: Int) throws(ReplayMaker.FileError) {
    self.count = count
    let mapped = unsafe mmap(nil, count, PROT_READ, MAP_SHARED, descriptor, 0)
    guard let mapped = unsafe mapped, unsafe mapped != MAP_FAILED else { throw ReplayMaker.FileError(errno) }
    unsafe pointer = mapped
  }

  deinit { _ = unsafe munmap(pointer, count) }

  private var bytes: RawSpan {
    @_lifetime(borrow self)
    get {
      let span = unsafe RawSpan(_unsafeStart: UnsafeRawPointer(pointer), byteCount: count)
      return unsafe _overrideLifetime(span, borrowing: self)
    }
  }

  func word(at offset: Int) -> UInt32 { bytes.uint32(at: offset) }

  func write(_ range: Range<Int>, into output: inout ByteWriter) { output.write(bytes.extracting(range)) }
}
