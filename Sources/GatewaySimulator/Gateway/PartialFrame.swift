import BinaryProtocol
import Bytes
import NIOCore

/// The beginning of a frame that is not there in full.
struct PartialFrame {
  /// A buffer for a frame of usual length costs no counting.
  private static let uncountedBytes = 4 << 10

  private(set) var bytes = ByteBuffer()
  /// When it began, later by each time for which the gateway did not read.
  private var since: NIODeadline?
  /// Counts the frames: what gives one up may come when it is complete.
  private(set) var number = 0
  /// It is long, and counted among the buffers of all connections.
  private(set) var isCounted = false

  var isEmpty: Bool { bytes.readableBytes == 0 }
  var capacity: Int { bytes.capacity }

  /// Whether it has to be counted, or to be counted no longer.
  var needsCounting: Bool { isCounted || bytes.capacity > Self.uncountedBytes }

  /// Notes whether its buffer is long. Returns it.
  mutating func count() -> Bool {
    isCounted = bytes.capacity > Self.uncountedBytes
    return isCounted
  }

  mutating func uncount() { isCounted = false }

  /// Keeps what is left of a read.
  mutating func begin(_ rest: ByteBuffer, _ allocator: ByteBufferAllocator, at now: NIODeadline) {
    // A separate buffer: the read buffer is 64 KB, and this one may be kept for long.
    bytes = allocator.buffer(capacity: max(512, rest.readableBytes))
    bytes.writeImmutableBuffer(rest)
    since = now
    number += 1
  }

  /// Completes the frame with bytes from a read. Returns it; `nil`: it is still incomplete.
  mutating func complete(from more: inout ByteBuffer, _ limits: ProtocolLimits) -> ByteBuffer? {
    while true {
      let needed: Int
      switch BinaryFrame.extent(of: bytes.readableBytesSpan, at: 0, limits: limits) {
      case .incomplete(let least): needed = least
      case .complete, .malformed:
        let frame = bytes
        drop()
        return frame
      }
      let missing = needed - bytes.readableBytes
      guard var piece = more.readSlice(length: min(missing, more.readableBytes)), piece.readableBytes > 0 else {
        return nil
      }
      let isEnough = piece.readableBytes == missing
      bytes.writeBuffer(&piece)
      if !isEnough { return nil }
    }
  }

  mutating func drop() {
    bytes = ByteBuffer()
    since = nil
  }

  /// Whether it has been incomplete for longer than allowed.
  func isLate(_ now: NIODeadline, _ allowed: TimeAmount) -> Bool {
    guard let since, !isEmpty else { return false }
    return now - since > allowed
  }

  /// The gateway did not read for this time, so that the peer was not late.
  mutating func excuse(_ time: TimeAmount) { since = since.map { $0 + time } }
}
