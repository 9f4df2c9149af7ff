import BinaryProtocol
import Bytes
import Glibc

/// Takes the records of `apnscope decode`, one line at a time, and makes a replay of the notifications.
///
/// Frames are written to a temporary file at once. The file has no name, so it is gone when the process ends.
public struct ReplayMaker: ~Copyable {
  /// The temporary file cannot be created or written.
  public struct FileError: Error, Sendable, CustomStringConvertible {
    let code: Int32
    init(_ code: Int32) { self.code = code }
    public var description: String { "temporary file: \(SystemError.text(code))" }
  }

  /// Why a record was not added: the record is not usable, or the temporary file cannot be written.
  public enum Failure: Error, Sendable {
    case record(RecordError)
    case file(FileError)
  }

  private static let blockLength = 1 << 18

  private let limit: Int
  private let descriptor: Int32
  private var output = ByteWriter(capacity: 2 * ReplayMaker.blockLength)
  private var scratch = ByteWriter(capacity: 1 << 16)
  /// Bytes in the file.
  private var written = 0
  private var entries: [Replay.Entry] = []
  private var isSorted = true
  private var lastTime: Int64?
  /// By connection: no notification goes before one that its connection has written earlier.
  private var lastTimes: [Int: Int64] = [:]
  private var skippedRecords = 0
  private var hasUnusualTokenSizes = false

  /// - Parameters:
  ///   - limit: the maximum number of notifications.
  ///   - directory: the folder of the temporary file.
  public init(limit: Int, directory: String) throws(FileError) {
    self.limit = limit
    guard let descriptor = UnnamedFile.open(in: directory) else { throw FileError(errno) }
    self.descriptor = descriptor
  }

  deinit { close(descriptor) }

  /// Adds the record of a line, given without its line feed. Empty lines and other records are skipped.
  public mutating func add(record line: RawSpan) throws(Failure) {
    do {
      try read(line)
    } catch {
      throw .record(error)
    }
    if output.count >= Self.blockLength { try writeOut() }
  }

  private mutating func read(_ line: RawSpan) throws(RecordError) {
    guard var members = try RecordMembers(line) else { return }
    var kind = RecordKind()
    var notification = RecordedNotification()
    while let member = members.next() {
      if try kind.read(member, of: members) {
        // The type comes first, so that other records are not looked at further.
        if kind.isOther { break }
      } else {
        try notification.read(member, of: members)
      }
    }
    try kind.check()
    guard kind.isNotification else {
      skippedRecords += 1
      // Connections are numbered from 1 again after it.
      if kind.isCapture { lastTimes = [:] }
      return
    }
    // A malformed frame cannot be reconstructed: a different notification would be accepted.
    guard !notification.isMalformed else {
      skippedRecords += 1
      return
    }
    guard entries.count < limit else {
      throw RecordError("more than \(limit) notifications; raise --replay-limit")
    }
    try append(notification, line)
  }

  private mutating func append(_ notification: RecordedNotification, _ line: RawSpan) throws(RecordError) {
    let start = output.count
    output.write(bigEndian: 0 as UInt64)
    let frame = try notification.encode(line, into: &output, scratch: &scratch)
    var word = UInt32(frame.identifierOffset ?? 0)
    if frame.tokenLength == 0 { word |= Replay.missingTokenBit }
    output.overwrite(bigEndian: UInt32(output.count - start - Replay.headerLength), at: start)
    output.overwrite(bigEndian: word, at: start + 4)
    if frame.tokenLength != 0, frame.tokenLength != 32 { hasUnusualTokenSizes = true }
    var time = notification.time ?? lastTimes[notification.connection] ?? lastTime ?? 0
    if let last = lastTimes[notification.connection] { time = max(time, last) }
    if let last = entries.last, time < last.time { isSorted = false }
    (lastTimes[notification.connection], lastTime) = (time, time)
    entries.append(Replay.Entry(offset: written + start, time: time))
  }

  private mutating func writeOut() throws(Failure) {
    try Self.write(output.bytes, to: descriptor)
    written += output.count
    output.removeAll()
  }

  private static func write(_ bytes: RawSpan, to descriptor: Int32) throws(Failure) {
    var offset = 0
    while offset < bytes.byteCount {
      let rest = bytes.extracting(offset..<bytes.byteCount)
      // Safe: the memory lives through the call.
      let count = unsafe rest.withUnsafeBytes { unsafe Glibc.write(descriptor, $0.baseAddress, $0.count) }
      if count < 0 {
        if errno == EINTR { continue }
        throw .file(FileError(errno))
      }
      offset += count
    }
  }

  /// Returns the replay of all notifications added. Throws when there are none, or the file cannot be written or
  /// mapped.
  public consuming func finish() throws(Failure) -> Replay {
    try writeOut()
    guard !entries.isEmpty else { throw .record(RecordError("no notifications")) }
    // Of the same time, the earlier in the file goes first.
    if !isSorted { entries.sort { ($0.time, $0.offset) < ($1.time, $1.offset) } }
    let first = entries[0].time
    if first != 0 { for index in entries.indices { entries[index].time -= first } }
    do {
      let frames = try MappedFile(descriptor, count: written)
      return Replay(
        entries, frames, skippedRecords: skippedRecords,
        hasUnusualTokenSizes: hasUnusualTokenSizes)
    } catch {
      throw .file(error)
    }
  }
}
