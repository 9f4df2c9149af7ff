import Bytes
import Foundation
import TestSupport

/// A capture file taken apart: what stands before its packets, and each packet's record with what follows it.
///
///     let capture = try CutCapture(contentsOf: path)
///     for piece in capture.pieces(of: 7) { … }
struct CutCapture {
  /// Of a whole file, or of what can be put in front of any of its packets: header, sections, interfaces.
  private(set) var header: [UInt8]
  /// Records of packets, with what follows each of them up to the next.
  private(set) var records: [[UInt8]] = []
  private(set) var times: [UInt64] = []

  /// `nil` for what is no pcap or pcapng.
  init?(_ bytes: [UInt8]) {
    header = []
    guard bytes.count >= 24 else { return nil }
    let span = bytes.rawBytes
    switch span.uint32(at: 0) {
    case 0xa1b2_c3d4, 0xa1b2_3c4d: readPcap(bytes, bigEndian: true)
    case 0xd4c3_b2a1, 0x4d3c_b2a1: readPcap(bytes, bigEndian: false)
    case 0x0a0d_0d0a: readPcapng(bytes, bigEndian: span.uint32(at: 8) == 0x1a2b_3c4d)
    default: return nil
    }
  }

  /// Unpacks what is compressed with the tool for it; `nil` when that is not there.
  init?(contentsOf path: String) throws {
    let tool = path.hasSuffix(".gz") ? "gzip" : path.hasSuffix(".zst") ? "zstd" : nil
    guard let tool else {
      self.init([UInt8](try Data(contentsOf: URL(filePath: path))))
      return
    }
    guard ExternalTool.isInstalled(tool) else { return nil }
    self.init(try ExternalTool.run(tool, ["-dc", path]))
  }

  var isOrdered: Bool { zip(times, times.dropFirst()).allSatisfy { $0 <= $1 } }
  var isStrictlyOrdered: Bool { zip(times, times.dropFirst()).allSatisfy { $0 < $1 } }

  private mutating func readPcap(_ bytes: [UInt8], bigEndian: Bool) {
    header = Array(bytes[..<24])
    let span = bytes.rawBytes
    var offset = 24
    while offset + 16 <= bytes.count {
      let end = offset + 16 + Int(span.uint32(at: offset + 8, bigEndian: bigEndian))
      guard end <= bytes.count else { break }
      times.append(
        UInt64(span.uint32(at: offset, bigEndian: bigEndian)) << 32
          | UInt64(span.uint32(at: offset + 4, bigEndian: bigEndian)))
      records.append(Array(bytes[offset..<end]))
      offset = end
    }
  }

  private mutating func readPcapng(_ bytes: [UInt8], bigEndian: Bool) {
    let span = bytes.rawBytes
    var offset = 0
    while offset + 12 <= bytes.count {
      let type = span.uint32(at: offset, bigEndian: bigEndian)
      let end = offset + Int(span.uint32(at: offset + 4, bigEndian: bigEndian))
      guard end <= bytes.count, end > offset else { break }
      let block = Array(bytes[offset..<end])
      switch type {
      case 0x0a0d_0d0a, 1: header += block
      case 6:
        times.append(
          UInt64(span.uint32(at: offset + 12, bigEndian: bigEndian)) << 32
            | UInt64(span.uint32(at: offset + 16, bigEndian: bigEndian)))
        records.append(block)
      default: if records.isEmpty { header += block } else { records[records.count - 1] += block }
      }
      offset = end
    }
  }

  /// The packets in one file.
  var whole: [UInt8] { header + records.joined() }

  /// The packets in one file, in this order.
  func file(_ order: [Int]) -> [UInt8] { header + order.flatMap { records[$0] } }

  /// Files of so many packets each, one after the other.
  func pieces(of count: Int) -> [[UInt8]] {
    stride(from: 0, to: records.count, by: count).map {
      header + records[$0..<min($0 + count, records.count)].joined()
    }
  }

  /// Files as so many queues or capture points write them: each packet is in one of them.
  func queues(_ count: Int) -> [[UInt8]] {
    (0..<count).filter { $0 < records.count }.map { queue in
      header + records.indices.filter { $0 % count == queue }.flatMap { records[$0] }
    }
  }
}
