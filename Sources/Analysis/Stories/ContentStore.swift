import Bytes

/// Keeps byte strings for later: the latest in memory, all others in an unnamed file.
///
/// A string that was kept lately is kept once.
struct ContentStore: ~Copyable {
  private struct Recent {
    var key = ContentKey.zero
    var place = -1
  }

  /// A part of the file that was read: strings are asked for in another order than they were kept in, some often.
  private struct Window {
    /// The window's offset in the file, in units of `windowLength`; -1: nothing was read.
    var number = -1
    var bytes: [UInt8] = []
  }

  /// Bytes that are read from the file at a time, and how many such parts are in memory.
  private static let windowLength = 1 << 14
  private static let windowCount = 64

  private let folder: String
  private var file: UnnamedFile?
  /// The strings that are not in the file yet, each after its length.
  private var latest: ByteWriter
  private let maximumLatest: Int
  private var recent: [Recent]
  private var windows = [Window](repeating: Window(), count: windowCount)

  /// - Parameters:
  ///   - memory: the most bytes to hold in memory.
  ///   - folder: the folder of the file, if one is needed.
  init(memory: Int, folder: String) {
    self.folder = folder
    maximumLatest = memory / 2
    latest = ByteWriter(capacity: min(maximumLatest, 1 << 16))
    // A power of two, so that a part of the key is the place.
    var places = 1
    while 2 * places * MemoryLayout<Recent>.stride <= memory / 4 { places *= 2 }
    recent = Array(repeating: Recent(), count: min(places, 1 << 16))
  }

  private var written: Int { file?.count ?? 0 }

  /// Keeps a string and returns its place.
  ///
  /// - Parameter key: the key of the string's content.
  mutating func keep(_ bytes: RawSpan, key: ContentKey) throws(UnnamedFile.Failure) -> Int {
    let slot = Int(truncatingIfNeeded: key.low) & (recent.count - 1)
    if recent[slot].place >= 0, recent[slot].key == key { return recent[slot].place }
    // Growing an array by doubling needs as much memory again.
    if latest.count + bytes.byteCount + 4 > maximumLatest / 2, latest.count > 0 { try writeOut() }
    let place = written + latest.count
    latest.write(bigEndian: UInt32(bytes.byteCount))
    latest.write(bytes)
    recent[slot] = Recent(key: key, place: place)
    return place
  }

  private mutating func writeOut() throws(UnnamedFile.Failure) {
    let file = if let file = self.file { file } else { try UnnamedFile(in: folder) }
    self.file = file
    try file.append(latest.bytes)
    latest.removeAll()
  }

  /// The string at a place that `keep` returned.
  mutating func string(at place: Int) throws(UnnamedFile.Failure) -> [UInt8] {
    guard place < written else {
      let start = place - written + 4
      let length = Int(latest.bytes.uint32(at: start - 4))
      return Array(copying: latest.bytes.extracting(start..<start + length))
    }
    let head = try stored(4, at: place)
    let start = place + 4
    return try stored(Int(head.rawBytes.uint32(at: 0)), at: start)
  }

  private mutating func stored(_ count: Int, at place: Int) throws(UnnamedFile.Failure) -> [UInt8] {
    var result: [UInt8] = []
    result.reserveCapacity(count)
    while result.count < count {
      let number = (place + result.count) / Self.windowLength
      let slot = number % Self.windowCount
      if windows[slot].number != number { try read(number, into: slot) }
      let start = place + result.count - number * Self.windowLength
      // Only ranges of kept strings are requested.
      let end = min(start + count - result.count, windows[slot].bytes.count)
      guard start < end else { return [] }
      result.append(contentsOf: windows[slot].bytes[start..<end])
    }
    return result
  }

  private mutating func read(_ number: Int, into slot: Int) throws(UnnamedFile.Failure) {
    windows[slot].number = -1
    guard let file else {
      windows[slot].bytes = []
      return
    }
    let start = number * Self.windowLength
    let length = max(0, min(Self.windowLength, file.count - start))
    if windows[slot].bytes.count != length { windows[slot].bytes = Array(repeating: 0, count: length) }
    var failure: UnnamedFile.Failure?
    // Safe: the array outlives the call, and has as many bytes as are read.
    unsafe windows[slot].bytes.withUnsafeMutableBytes { memory in
      do throws(UnnamedFile.Failure) { try unsafe file.read(into: memory, at: start) } catch { failure = error }
    }
    if let failure { throw failure }
    windows[slot].number = number
  }
}
