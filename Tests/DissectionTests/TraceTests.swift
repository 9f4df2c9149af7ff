import BinaryProtocol
import FoundationEssentials
import PacketCapture
import Testing

@testable import Records

/// One trace, one baseline: adding a case is adding two files to Traces/.
@Suite("Traces")
struct TraceTests {
  static let baselines = Folder.names(in: Folder.traces, ending: ".jsonl")

  @Test("There are traces, and each has its baseline")
  func complete() throws {
    let files = try FileManager.default.contentsOfDirectory(atPath: Folder.traces.path)
    let traces = files.filter {
      !$0.hasSuffix(".jsonl") && !$0.hasSuffix(".keys") && $0 != "README.md" && $0 != "make"
        && $0 != "http2-clients.tar.zst"
    }
    #expect(traces.count >= 12)
    #expect(traces.map { $0 + ".jsonl" }.sorted() == Self.baselines)
    let index = try String(contentsOf: Folder.traces.appending(path: "README.md"), encoding: .utf8)
    for keys in files where keys.hasSuffix(".keys") { #expect(traces.contains(String(keys.dropLast(".keys".count)))) }
    for trace in traces { #expect(index.contains("| \(trace) |"), "\(trace) has no line in README.md") }
  }

  @Test("A trace decodes to its baseline", arguments: baselines)
  func baseline(name: String) throws {
    let trace = String(name.dropLast(".jsonl".count))
    let expected = try String(contentsOf: Folder.traces.appending(path: name), encoding: .utf8)
    let decoded = try decodedLines(Folder.traces.appending(path: trace).path, source: trace)
    if decoded == expected { return }
    // Show the first line that differs, not the whole file.
    let (old, new) = (expected.split(separator: "\n"), decoded.split(separator: "\n"))
    #expect(new.count == old.count)
    for (line, pair) in zip(old, new).enumerated() where pair.0 != pair.1 {
      Issue.record("line \(line + 1)\nbaseline \(pair.0)\ndecoded  \(pair.1)")
      return
    }
  }

  /// Nothing is invented and nothing is passed over in silence.
  @Test("Every byte of a stream belongs to exactly one record", arguments: baselines)
  func everyByteOnce(name: String) throws {
    let seen = try dissect(Folder.traces.appending(path: String(name.dropLast(".jsonl".count))).path)
    for connection in seen.connections where connection.tls?.isDecrypted != false {
      for direction in [Direction.client, .server] {
        expectTiling(of: connection, direction, in: seen)
      }
    }
  }

  /// The fates of a connection add up to what was written, the connections to the summary.
  @Test("The books balance", arguments: baselines)
  func balance(name: String) throws {
    let seen = try dissect(Folder.traces.appending(path: String(name.dropLast(".jsonl".count))).path)
    let summary = try #require(seen.summaries.first)
    #expect(seen.summaries.count == 1)
    for connection in seen.connections {
      let fates = connection.fates
      #expect(fates.accepted + fates.rejected + fates.discarded + fates.unknown == connection.notifications)
      let own = seen.notifications.filter { $0.connection == connection.connection }
      #expect(own.map(\.index) == Array(0..<connection.notifications))
      let tuples = seen.tuples.filter { $0.connection == connection.connection }
      #expect(tuples.map(\.index) == Array(0..<connection.feedbackTuples))
    }
    #expect(seen.connections.map(\.connection).sorted() == Array(1...seen.connections.count))
    #expect(summary.connections == seen.connections.count)
    #expect(summary.notifications == seen.notifications.count)
    #expect(summary.errorResponses == seen.responses.count)
    #expect(summary.errorResponses == seen.connections.map(\.errorResponses).reduce(0, +))
    #expect(summary.feedbackTuples == seen.tuples.count)
    #expect(summary.messages == seen.messages.count)
    #expect(summary.gaps == seen.gaps.count)
    #expect(summary.malformed == seen.malformed.count + seen.notifications.count { $0.problem != nil })
    #expect(summary.undecryptedConnections == seen.connections.filter { $0.tls?.isDecrypted == false }.count)
  }
}

/// Records, gaps and malformed bytes of one direction lie one behind the other from 0 to the stream's end.
func expectTiling(
  of connection: ConnectionRecord, _ direction: Direction, in seen: Collector,
  sourceLocation: SourceLocation = #_sourceLocation
) {
  let number = connection.connection
  var ranges: [Range<Int>] = []
  func add(_ offset: Int, _ length: Int) { ranges.append(offset..<offset + length) }
  if direction == .client {
    for record in seen.notifications where record.connection == number { add(record.offset, record.length) }
  } else {
    for record in seen.responses where record.place.connection == number { add(record.place.offset, 6) }
    for record in seen.tuples where record.connection == number { add(record.offset, record.length) }
  }
  for record in seen.messages where record.place.connection == number && record.direction == direction {
    add(record.place.offset, record.place.length)
  }
  var missing = 0
  for gap in seen.gaps where gap.place.connection == number && gap.direction == direction {
    add(gap.place.offset, gap.place.length)
    switch gap.reason {
    case .lost, .truncated, .undecrypted: missing += gap.place.length
    case .beforeCapture, .captureEnd, .givenUp: break
    }
  }
  for record in seen.malformed where record.place.connection == number && record.direction == direction {
    add(record.place.offset, record.place.length)
  }
  var end = 0
  for range in ranges.sorted(by: { $0.lowerBound < $1.lowerBound }) {
    #expect(range.lowerBound == end, "\(direction) of connection \(number)", sourceLocation: sourceLocation)
    end = range.upperBound
  }
  let carried = direction == .client ? connection.clientBytes : connection.serverBytes
  #expect(end == carried + missing, "\(direction) of connection \(number)", sourceLocation: sourceLocation)
}
