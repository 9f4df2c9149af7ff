import Bytes
import TestSupport

@testable import PacketCapture

/// Writes integers in either byte order, for files that are put together in a test.
struct FileBuilder {
  var bytes: [UInt8] = []
  let bigEndian: Bool

  mutating func u16(_ value: UInt16) { append(value, 2) }
  mutating func u32(_ value: UInt32) { append(value, 4) }
  mutating func u64(_ value: UInt64) { append(value, 8) }

  private mutating func append(_ value: some FixedWidthInteger & UnsignedInteger, _ count: Int) {
    let shifts = (0..<count).map { 8 * $0 }
    bytes += (bigEndian ? shifts.reversed() : shifts).map { UInt8(truncatingIfNeeded: UInt64(value) >> UInt64($0)) }
  }

  mutating func pad(to multiple: Int) { while bytes.count % multiple != 0 { bytes.append(0) } }
}

/// A pcap file.
struct PcapBuilder {
  private var file: FileBuilder
  private let hasLongRecords: Bool
  var bytes: [UInt8] { file.bytes }
  /// Where each packet record ends.
  private(set) var ends: [Int] = []

  init(magic: UInt32 = 0xa1b2_c3d4, bigEndian: Bool = false, major: UInt16 = 2, linkType: UInt32 = 1) {
    file = FileBuilder(bigEndian: bigEndian)
    hasLongRecords = magic == 0xa1b2_cd34
    file.u32(magic)
    file.u16(major)
    file.u16(4)
    file.u32(0)
    file.u32(0)
    file.u32(65_535)
    file.u32(linkType)
  }

  mutating func packet(_ data: [UInt8], seconds: UInt32 = 0, fraction: UInt32 = 0, original: Int? = nil) {
    file.u32(seconds)
    file.u32(fraction)
    file.u32(UInt32(data.count))
    file.u32(UInt32(original ?? data.count))
    if hasLongRecords { file.u64(0) }
    file.bytes += data
    ends.append(file.bytes.count)
  }
}

/// A pcapng file.
struct PcapngBuilder {
  private var file: FileBuilder
  var bytes: [UInt8] { file.bytes }
  /// Where each packet block ends.
  private(set) var packetEnds: [Int] = []
  /// Where each block ends.
  private(set) var ends: [Int] = []

  init(bigEndian: Bool = false, after previous: PcapngBuilder? = nil, major: UInt16 = 1) {
    file = FileBuilder(bytes: previous?.bytes ?? [], bigEndian: bigEndian)
    packetEnds = previous?.packetEnds ?? []
    ends = previous?.ends ?? []
    block(0x0a0d_0d0a) {
      $0.u32(0x1a2b_3c4d)
      $0.u16(major)
      $0.u16(0)
      $0.u64(.max)
    }
  }

  mutating func block(_ type: UInt32, _ body: (inout FileBuilder) -> Void) {
    var contents = FileBuilder(bigEndian: file.bigEndian)
    body(&contents)
    contents.pad(to: 4)
    file.u32(type)
    file.u32(UInt32(contents.bytes.count + 12))
    file.bytes += contents.bytes
    file.u32(UInt32(contents.bytes.count + 12))
    ends.append(file.bytes.count)
  }

  mutating func interface(
    _ linkType: UInt16 = 1, snapLength: UInt32 = 0, resolution: UInt8? = nil, offset: Int64? = nil
  ) {
    block(1) {
      $0.u16(linkType)
      $0.u16(0)
      $0.u32(snapLength)
      // A name before them, so that options are walked; an end behind them.
      $0.u16(2)
      $0.u16(3)
      $0.bytes += Array("lo0\0".utf8)
      if let resolution {
        $0.u16(9)
        $0.u16(1)
        $0.bytes += [resolution, 0, 0, 0]
      }
      if let offset {
        $0.u16(14)
        $0.u16(8)
        $0.u64(UInt64(bitPattern: offset))
      }
      $0.u32(0)
    }
  }

  mutating func enhanced(_ data: [UInt8], interface: UInt32 = 0, ticks: UInt64 = 0, original: Int? = nil) {
    block(6) {
      $0.u32(interface)
      $0.u32(UInt32(ticks >> 32))
      $0.u32(UInt32(truncatingIfNeeded: ticks))
      $0.u32(UInt32(data.count))
      $0.u32(UInt32(original ?? data.count))
      $0.bytes += data
    }
    packetEnds.append(bytes.count)
  }

  mutating func simple(_ data: [UInt8], original: Int? = nil) {
    block(3) {
      $0.u32(UInt32(original ?? data.count))
      $0.bytes += data
    }
    packetEnds.append(bytes.count)
  }

  mutating func obsolete(_ data: [UInt8], interface: UInt16 = 0, ticks: UInt64 = 0) {
    block(2) {
      $0.u16(interface)
      $0.u16(0xffff)
      $0.u32(UInt32(ticks >> 32))
      $0.u32(UInt32(truncatingIfNeeded: ticks))
      $0.u32(UInt32(data.count))
      $0.u32(UInt32(data.count))
      $0.bytes += data
    }
    packetEnds.append(bytes.count)
  }

  mutating func secrets(_ text: String, type: UInt32 = 0x544c_534b) {
    block(10) {
      $0.u32(type)
      $0.u32(UInt32(text.utf8.count))
      $0.bytes += Array(text.utf8)
    }
  }
}

/// What a capture file holds, packet by packet.
struct ReadPackets {
  var packets: [Packet] = []
  var bytes: [[UInt8]] = []
  var warnings: [String] = []
  var linkTypes: [LinkType] = []
  var secrets: [DecryptionSecrets] = []
  var format: CaptureFormat

  init(_ file: [UInt8], options: CaptureOptions = CaptureOptions()) throws {
    self = try withFile(file) { try ReadPackets(path: $0, options: options) }
  }

  init(path: String, options: CaptureOptions = CaptureOptions()) throws {
    let input = try CaptureInput.open(path, options: options)
    switch consume input {
    case .dump(let dump):
      format = dump.format
    case .packets(let file):
      var file = file
      format = file.format
      var (packets, bytes): ([Packet], [[UInt8]]) = ([], [])
      try file.forEachPacket { packet, data, _ in
        packets.append(packet)
        bytes.append(Array(copying: data))
        return true
      }
      (self.packets, self.bytes) = (packets, bytes)
      (warnings, linkTypes, secrets) = (file.warnings, file.linkTypes, file.secrets)
    }
  }

  var times: [Int64] { packets.map(\.time.nanoseconds) }
  var numbers: [Int] { packets.map(\.number) }
}
