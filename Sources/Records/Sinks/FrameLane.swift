import BinaryProtocol
import Bytes
import PushModel

/// The lane of sinks that receive notifications one by one: the fields of each, and the position of its frame.
package struct FrameLane: RecordLane {
  package var frames = FrameList()
  private var blockAddress = 0
  private var blockLength = 0

  package init() {}

  package var position: Int { frames.count }

  package mutating func begin(_ batch: inout LaneBatch, _ block: RawSpan) {
    swap(&frames, &batch.frames)
    frames.removeAll()
    blockAddress = Self.address(of: block)
    blockLength = block.byteCount
  }

  package mutating func end(_ batch: inout LaneBatch) { swap(&frames, &batch.frames) }

  /// Only compared: nothing is read through it.
  @inline(__always)
  private static func address(of bytes: RawSpan) -> Int {
    unsafe bytes.withUnsafeBytes { Int(bitPattern: $0.baseAddress) }
  }

  /// The offset of a frame in the block that the lane began with; `nil` if the frame is not in it.
  @inline(__always)
  package func offset(of frame: RawSpan) -> Int? {
    let start = Self.address(of: frame) - blockAddress
    return start >= 0 && start + frame.byteCount <= blockLength ? start : nil
  }

  @inline(__always)
  package mutating func receive(_ fields: PushFields, _ frame: RawSpan, at place: RecordPlace, index: Int) {
    frames.append(fields, frame, at: offset(of: frame), place, index: index)
  }

  package mutating func receive(
    malformed problem: String, _ fields: PushFields, _ frame: RawSpan, at place: RecordPlace, index: Int
  ) {
    frames.append(malformed: problem, fields, frame, at: offset(of: frame), place, index: index)
  }
}
