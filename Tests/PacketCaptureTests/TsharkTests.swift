import Foundation
import Testing

/// tshark reads the same bytes from the project's own recordings.
@Suite(.enabled(if: ExternalTool.isInstalled("tshark"))) struct TsharkTests {
  @Test(arguments: OwnTraces.captures) func tsharkFollowsTheSameBytes(capture: String) throws {
    let path = OwnTraces.folder + "/" + capture
    let contents = try CaptureContents(of: path)
    #expect(contents.streams.violations.isEmpty)
    let count = contents.streams.connections.count
    var ours = contents.streams.connectionsByEnds
    let streams = (0..<min(count, 40)).flatMap { ["-z", "follow,tcp,raw,\($0)"] }
    guard !streams.isEmpty else { return }
    // 2 is how tshark ends after a file that is cut short; what is whole it has read.
    let output = try ExternalTool.run("tshark", ["-n", "-q", "-r", path] + streams, statuses: [0, 2])
    let followed = FollowedStream.all(in: String(decoding: output, as: UTF8.self))
    #expect(followed.count == min(count, 40))
    for stream in followed where stream.first.node != ":0" {
      let ends: Set<String> = [stream.first.node, stream.second.node]
      let connection = try #require(ours[ends]?.first, "no connection between \(ends)")
      ours[ends]?.removeFirst()
      for (node, bytes) in [stream.first, stream.second] {
        #expect(connection.direction(from: node).bytes == bytes, "from \(node)")
      }
    }
  }
}

/// What `tshark -z follow,tcp,raw,N` prints.
///
/// ```
/// Node 0: 10.0.0.1:50000
/// Node 1: 17.0.0.1:2195
/// 68656c6c6f            from node 0
/// 	676f6f64            from node 1
/// ```
private struct FollowedStream {
  var first: (node: String, bytes: [UInt8]) = ("", [])
  var second: (node: String, bytes: [UInt8]) = ("", [])

  static func all(in text: String) -> [FollowedStream] {
    var streams: [FollowedStream] = []
    for line in text.split(separator: "\n") {
      if line.hasPrefix("Follow: ") {
        streams.append(FollowedStream())
      } else if line.hasPrefix("Node 0: ") {
        streams[streams.count - 1].first.node = String(line.dropFirst(8))
      } else if line.hasPrefix("Node 1: ") {
        streams[streams.count - 1].second.node = String(line.dropFirst(8))
      } else if line.hasPrefix("\t") {
        streams[streams.count - 1].second.bytes += bytes(line.dropFirst())
      } else if line.allSatisfy(\.isHexDigit) {
        streams[streams.count - 1].first.bytes += bytes(line)
      }
    }
    return streams
  }

  /// tshark writes a note of its own where bytes are missing.
  private static func bytes(_ digits: Substring) -> [UInt8] {
    let digits = Array(digits.utf8)
    let bytes = stride(from: 0, to: digits.count - 1, by: 2).map {
      UInt8(String(decoding: digits[$0...$0 + 1], as: UTF8.self), radix: 16) ?? 0
    }
    let text = String(decoding: bytes, as: UTF8.self)
    return text.hasPrefix("[") && text.contains(" bytes missing in capture file]") ? [] : bytes
  }
}

/// The captures that come with the project.
enum OwnTraces {
  static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().appendingPathComponent("Traces").path

  static let captures: [String] = {
    let files = FileManager.default.enumerator(atPath: folder)?.allObjects as? [String] ?? []
    return files.filter { $0.contains(".pcap") && !$0.hasSuffix(".jsonl") && !$0.hasSuffix(".md") }.sorted()
  }()
}
