import Foundation
import TestSupport
import Testing

/// tshark reads the same bytes from the project's own recordings.
@Suite(.waiting, .enabled(if: ExternalTool.isInstalled("tshark"))) struct TsharkTests {
  @Test("Tshark follows the same bytes", arguments: OwnTraces.captures) func tsharkFollowsTheSameBytes(capture: String)
    throws
  {
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

/// The captures that come with the project.
enum OwnTraces {
  static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().appendingPathComponent("Traces").path

  static let captures: [String] = {
    let files = FileManager.default.enumerator(atPath: folder)?.allObjects as? [String] ?? []
    return files.filter { $0.contains(".pcap") && ![".jsonl", ".md", ".keys"].contains(where: $0.hasSuffix) }.sorted()
  }()
}
