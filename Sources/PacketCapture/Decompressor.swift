import CZlib
import CZstd
import Synchronization

/// Decompresses a file. The decompressor moves with its file to the reading thread, so it is behind a lock; the lock is
/// taken once for each block and is never contended.
protocol Decompressor: AnyObject, Sendable {
  static var name: String { get }
  /// Whether the decompressor reads the file itself, so that `supply` is not called.
  var readsItself: Bool { get }
  func supply(_ block: [UInt8], count: Int)
  func decompress(into output: inout [UInt8], from offset: Int) throws(CaptureError) -> Int
  var isAtBoundary: Bool { get }
}

/// The decompressor of one format.
final class StreamDecompressor<Stream: DecompressionStream & ~Copyable>: Decompressor {
  static var name: String { Stream.name }
  var readsItself: Bool { Stream.readsItself }
  private let stream: Mutex<Stream>

  init(_ stream: consuming sending Stream) { self.stream = Mutex(stream) }

  var isAtBoundary: Bool { stream.withLock { $0.isAtBoundary } }
  func supply(_ block: [UInt8], count: Int) { stream.withLock { $0.supply(block, count: count) } }
  func decompress(into output: inout [UInt8], from offset: Int) throws(CaptureError) -> Int {
    try stream.withLock { stream throws(CaptureError) in try stream.decompress(into: &output, from: offset) }
  }
}

/// Turns compressed blocks into bytes, a piece at a time.
protocol DecompressionStream: ~Copyable {
  /// The format's common name.
  static var name: String { get }
  /// Whether the stream reads the file itself, so that `supply` is not called.
  static var readsItself: Bool { get }
  /// Takes the next block of compressed input, after the previous one was consumed.
  mutating func supply(_ block: [UInt8], count: Int)
  /// Decompresses into `output` from `offset` to its end. Returns the number of bytes written; 0 if it needs more
  /// input.
  mutating func decompress(into output: inout [UInt8], from offset: Int) throws(CaptureError) -> Int
  /// Whether the input so far ends at the end of a compressed stream.
  var isAtBoundary: Bool { get }
}

extension DecompressionStream where Self: ~Copyable {
  static var readsItself: Bool { false }
}

/// gzip (RFC 1952) through zlib; concatenated members are one stream.
@safe struct GzipStream: ~Copyable, DecompressionStream {
  static let name = "gzip"

  // Safe: allocated in init, freed in deinit, never handed out.
  private let stream: UnsafeMutablePointer<z_stream>
  private var input: [UInt8] = []
  private var consumed = 0
  private(set) var isAtBoundary = false

  init() throws(CaptureError) {
    unsafe stream = .allocate(capacity: 1)
    unsafe stream.initialize(to: z_stream())
    guard unsafe apnscope_inflate_init(stream) == Z_OK else { throw CaptureError(.readFailed, "zlib does not start") }
  }

  deinit {
    unsafe inflateEnd(stream)
    unsafe stream.deallocate()
  }

  mutating func supply(_ block: [UInt8], count: Int) {
    input = Array(block[..<count])
    consumed = 0
  }

  mutating func decompress(into output: inout [UInt8], from offset: Int) throws(CaptureError) -> Int {
    while consumed < input.count && offset < output.count {
      if isAtBoundary {
        unsafe inflateReset(stream)
        isAtBoundary = false
      }
      let (status, made) = step(&output, offset)
      if status == Z_STREAM_END {
        isAtBoundary = true
      } else if status != Z_OK && status != Z_BUF_ERROR {
        throw CaptureError(.damaged, "the gzip contents are damaged")
      }
      if made > 0 { return made }
      if status == Z_BUF_ERROR { break }
    }
    // zlib may still hold output although all input was consumed.
    if consumed == input.count && !isAtBoundary && offset < output.count {
      let (status, made) = step(&output, offset)
      if status == Z_STREAM_END { isAtBoundary = true }
      return made
    }
    return 0
  }

  private mutating func step(_ output: inout [UInt8], _ offset: Int) -> (status: Int32, made: Int) {
    let available = output.count - offset
    return unsafe input.withUnsafeMutableBufferPointer { source in
      unsafe output.withUnsafeMutableBufferPointer { target in
        // Safe: zlib gets exactly the unread rest of `input` and the free rest of `output`.
        unsafe stream.pointee.next_in = source.baseAddress.map { unsafe $0 + consumed }
        unsafe stream.pointee.avail_in = UInt32(source.count - consumed)
        unsafe stream.pointee.next_out = target.baseAddress.map { unsafe $0 + offset }
        unsafe stream.pointee.avail_out = UInt32(available)
        let status = unsafe inflate(stream, Z_NO_FLUSH)
        consumed = unsafe source.count - Int(stream.pointee.avail_in)
        return unsafe (status, available - Int(stream.pointee.avail_out))
      }
    }
  }
}

/// Zstandard (RFC 8878) through libzstd; concatenated frames are one stream.
@safe struct ZstdStream: ~Copyable, DecompressionStream {
  static let name = "zstd"

  private let stream: OpaquePointer
  private var input: [UInt8] = []
  private var consumed = 0
  private(set) var isAtBoundary = false

  init() throws(CaptureError) {
    guard let stream = unsafe ZSTD_createDStream() else { throw CaptureError(.readFailed, "libzstd does not start") }
    unsafe self.stream = stream
  }

  deinit { unsafe _ = ZSTD_freeDStream(stream) }

  mutating func supply(_ block: [UInt8], count: Int) {
    input = Array(block[..<count])
    consumed = 0
  }

  mutating func decompress(into output: inout [UInt8], from offset: Int) throws(CaptureError) -> Int {
    guard offset < output.count else { return 0 }
    while true {
      let before = consumed
      var source = unsafe ZSTD_inBuffer()
      var target = unsafe ZSTD_outBuffer()
      let status = unsafe input.withUnsafeBufferPointer { inputMemory in
        unsafe output.withUnsafeMutableBufferPointer { outputMemory in
          // Safe: both buffers live during the call, and libzstd respects their sizes.
          unsafe source = ZSTD_inBuffer(src: inputMemory.baseAddress, size: inputMemory.count, pos: consumed)
          unsafe target = ZSTD_outBuffer(dst: outputMemory.baseAddress, size: outputMemory.count, pos: offset)
          return unsafe ZSTD_decompressStream(stream, &target, &source)
        }
      }
      if ZSTD_isError(status) != 0 {
        let reason = unsafe String(cString: ZSTD_getErrorName(status))
        throw CaptureError(.damaged, "the zstd contents are damaged: \(reason)")
      }
      consumed = unsafe source.pos
      let made = unsafe target.pos - offset
      if made > 0 || consumed > before { isAtBoundary = status == 0 }
      if made > 0 || consumed == input.count { return made }
    }
  }
}
