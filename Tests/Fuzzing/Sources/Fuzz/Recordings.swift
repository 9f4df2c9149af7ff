import Bytes

@testable import Dissection
@testable import PacketCapture
@testable import Records

/// A packet of a recording that the input describes.
private struct ScriptedPacket {
  var file: Int
  /// Nanoseconds since the first packet's second; no two are the same.
  var time: Int
  var bytes: [UInt8]
}

/// Packets of two connections over IPv4, in up to four files and in any order of time.
///
/// The first byte chooses the number of files, the reorder window and the limits. Each packet is a byte that chooses
/// file, connection, direction and length, a signed byte of milliseconds, and its payload.
@Sendable func fuzzRecording(_ bytes: RawSpan) {
  var script = Script(bytes)
  let choice = script.byte()
  let files = 1 + choice & 3
  var options = dissectionOptions(narrow: false)
  options.capture.reorderWindow = [nil, .max, 20_000_000, .max][choice >> 2 & 3]
  let isNarrow = choice & 0x10 != 0
  if isNarrow {
    options.capture.maximumReorderBytes = 500
    options.capture.maximumMergedFiles = 2
  }
  let packets = scripted(&script, files: files)
  let seen = dissect(
    (0..<files).map { file in capture(packets.filter { $0.file == file }) }, options, writes: choice & 0x20 != 0)
  law(seen.packets == packets.count, "\(seen.packets) of \(packets.count) packets are counted")
  guard options.capture.reorderWindow == .max, !isNarrow else { return }
  // However packets are spread and shuffled, they are read as one file in the order of time.
  let whole = dissect(
    [capture(packets.sorted { $0.time < $1.time })], dissectionOptions(narrow: false), writes: false)
  law(seen.connections == whole.connections, "\(seen.connections) connections, and \(whole.connections) in order")
  law(
    seen.notifications == whole.notifications && seen.errorResponses == whole.errorResponses,
    "\(seen.notifications) notifications, and \(whole.notifications) in order")
  law(seen.gaps == whole.gaps && seen.malformed == whole.malformed, "other damage than in order")
}

private func scripted(_ script: inout Script, files: Int) -> [ScriptedPacket] {
  var packets: [ScriptedPacket] = []
  var milliseconds = 500
  // By connection and direction.
  var sequences: [UInt32] = [1_000, 5_000, 9_000, 13_000]
  while !script.isAtEnd, packets.count < 400 {
    let choice = script.byte()
    milliseconds = min(900_000, max(0, milliseconds + Int(Int8(truncatingIfNeeded: script.byte()))))
    let stream = choice >> 2 & 3
    let length = [0, 6, 40, 120][choice >> 4 & 3]
    let payload = Array(copying: script.take(length))
    let isFirst = choice & 0x40 != 0
    let flags: UInt8 = isFirst ? (stream & 1 == 0 ? 0x02 : 0x12) : choice & 0x80 != 0 ? 0x11 : 0x18
    packets.append(
      ScriptedPacket(
        file: (choice & 3) % files, time: milliseconds * 1_000_000 + packets.count,
        bytes: segment(stream, sequences[stream], sequences[stream ^ 1], flags, payload)))
    sequences[stream] &+= UInt32(payload.count) + (flags == 0x18 ? 0 : 1)
  }
  return packets
}

private func big(_ value: Int, _ count: Int) -> [UInt8] {
  (0..<count).map { UInt8(truncatingIfNeeded: value >> (8 * (count - 1 - $0))) }
}

/// Even streams are those of the client.
private func segment(
  _ stream: Int, _ sequence: UInt32, _ acknowledged: UInt32, _ flags: UInt8, _ payload: [UInt8]
) -> [UInt8] {
  let isClient = stream & 1 == 0
  let client = [10, 0, 0, UInt8(5 + stream / 2)] as [UInt8]
  let server = [10, 0, 0, 9] as [UInt8]
  let ports = [40_001, 2195]
  var bytes = big(0x4500, 2) + big(40 + payload.count, 2) + big(0, 4) + big(0x4006_0000, 4)
  bytes += isClient ? client + server : server + client
  bytes += big(ports[isClient ? 0 : 1], 2) + big(ports[isClient ? 1 : 0], 2)
  bytes += big(Int(sequence), 4) + big(Int(acknowledged), 4) + [0x50, flags] + big(65_535, 2) + big(0, 4)
  return bytes + payload
}

/// A pcap with times in nanoseconds, of packets that begin with an IP header.
private func capture(_ packets: [ScriptedPacket]) -> [UInt8] {
  var bytes = big(0xa1b2_3c4d, 4) + big(0x0002_0004, 4) + big(0, 8) + big(262_144, 4) + big(101, 4)
  for packet in packets {
    bytes += big(1_450_000_000 + packet.time / 1_000_000_000, 4) + big(packet.time % 1_000_000_000, 4)
    bytes += big(packet.bytes.count, 4) + big(packet.bytes.count, 4) + packet.bytes
  }
  return bytes
}

/// Reads captures as one recording.
private func dissect(_ captures: [[UInt8]], _ options: DissectionOptions, writes: Bool) -> SummaryRecord {
  var summary = SummaryRecord()
  withFiles(captures[...], []) { paths in
    do {
      var recording = Recording()
      for path in paths {
        guard let file = try CaptureInput.openCapture(path, options: options.capture) else {
          return law(false, "a capture is none")
        }
        recording.add(file, options: options.capture)
      }
      recording.sort()
      let shared = SharedSink(LawSink(writes: writes))
      var dissection = Dissection(into: shared, options: options)
      dissection.numbersFiles = paths.count > 1
      let outcomes = try dissection.read(recording, sources: paths) { _ in true }
      law(outcomes.count == paths.count, "\(outcomes.count) outcomes of \(paths.count) files")
      dissection.finish()
      shared.sink.finish(dissection.summary)
      summary = dissection.summary
    } catch {
      law(false, "an error: \(error)")
    }
  }
  return summary
}

private func withFiles(_ captures: ArraySlice<[UInt8]>, _ paths: [String], _ body: ([String]) -> Void) {
  guard let first = captures.first else { return body(paths) }
  withFile(first.rawBytes) { path in withFiles(captures.dropFirst(), paths + [path], body) }
}

/// Pieces of a capture that comes through a pipe: the first byte chooses their length.
@Sendable func fuzzBlocks(_ bytes: RawSpan) {
  var script = Script(bytes)
  let length = 1 + script.byte()
  let rest = Array(copying: script.rest())
  func blocks(_ length: Int) -> (blocks: [[UInt8]], isDamaged: Bool) {
    var stream = BlockStream(maximumBlockLength: 1 << 16)
    var blocks: [[UInt8]] = []
    do {
      for start in stride(from: 0, to: rest.count, by: length) {
        let end = min(start + length, rest.count)
        try stream.take(rest.rawBytes.extracting(start..<end)) { _, block in blocks.append(Array(copying: block)) }
        law(stream.pendingBytes < 1 << 17, "\(stream.pendingBytes) bytes wait")
      }
      return (blocks, false)
    } catch {
      return (blocks, true)
    }
  }
  let whole = blocks(max(1, rest.count))
  let cut = blocks(length)
  law(whole.blocks == cut.blocks && whole.isDamaged == cut.isDamaged, "pieces change the blocks")
  for block in whole.blocks { law(block.count % 4 == 0 && block.count >= 12, "a block of \(block.count) bytes") }
}
