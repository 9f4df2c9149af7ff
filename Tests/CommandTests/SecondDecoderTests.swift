import Bytes
import Foundation
import LoadTest
import Measurement
import TestSupport
import Testing

/// What this project's decoder says, and the books of load and gateway, against a decoder that knows none of them.
@Suite("second decoder", .waiting, .enabled(if: SecondDecoder.isPossible))
struct SecondDecoderTests {
  private static let plain =
    (try? FileManager.default.contentsOfDirectory(atPath: Command.traces.path))?
    .filter { name in
      !["tls", "messages"].contains { name.hasPrefix($0) }
        && [".pcap", ".pcap.gz", ".pcap.zst"].contains { name.hasSuffix($0) }
    }
    .sorted() ?? []

  @Test("Both decoders read the same from every plain capture among the traces", arguments: some(10, of: plain))
  func traces(name: String) throws {
    try Command.inFolder { command in
      try command.trace(name)
      var capture = name
      if name.hasSuffix(".zst") {
        capture = String(name.dropLast(4))
        let path = Command.traces.appending(path: name).path
        try command.write(ExternalTool.run("zstd", ["-d", "-c", path]), capture)
      }
      let found = try SecondDecoder(command: command).compare(capture)
      #expect(found.status == 0 && found.counts["differences"] == 0, "\(found.text)")
      // snap-length-120 has no notification that is whole.
      let compared = ["notification", "error_response", "feedback"].reduce(0) { $0 + found.counts[$1, default: 0] }
      #expect(compared > 0)
    }
  }

  @Test("There are plain captures of each kind among the traces")
  func tracesAreThere() {
    #expect(Self.plain.count >= 12)
    for name in ["items-that-do-not-fit.pcap", "feedback-clear.pcap", "mid-stream.pcap.zst", "tiny-segments.pcap.gz"] {
      #expect(Self.plain.contains(name))
    }
  }

  /// Repeated identifiers and none, identifier 0 as a number and as none, frames whose items do not fit, several responses.
  @Test("Both decoders judge conversations made by chance alike", arguments: seeds(3, of: 30))
  func chance(seed: UInt64) throws {
    try Command.inFolder { command in
      let second = SecondDecoder(command: command)
      try second.makeConversations(seed: seed, "chance.pcap")
      let found = try second.compare("chance.pcap")
      #expect(found.status == 0 && found.counts["differences"] == 0, "\(found.text)")
      #expect(found.counts["connection"] == 200)
      for kind in ["notification", "error_response", "misfit", "accepted", "rejected", "discarded", "unknown", "fate"] {
        #expect(found.counts[kind, default: 0] >= 20, "\(kind)")
      }
      // Of a pipe the fates come as ranges, and they are the same.
      let ranges = try second.compare("chance.pcap", isPiped: true)
      #expect(ranges.status == 0 && ranges.counts == found.counts, "\(ranges.text)")
    }
  }

  @Test(
    "The comparison sees each difference",
    arguments: [
      (#""identifier":4,"#, #""identifier":5,"#), (#""status":128,"#, #""status":8,"#),
      (#""alert":"fits""#, #""alert":"fats""#), (#""token":"a1"#, #""token":"a0"#), (#""index":1,"#, #""index":2,"#),
      (#""notification":3,"accepted":3"#, #""notification":2,"accepted":3"#), (#""ambiguous":true"#, #""x":1"#),
      (#""accepted":3,"rejected":1"#, #""accepted":2,"rejected":2"#), (#""problem":"item 5"#, #""x":"item 5"#),
      (#""fate":"discarded""#, #""fate":"unknown""#), (#""offset":74,"#, #""offset":75,"#),
      (#""packet":4,"#, #""packet":5,"#), (#"40.004000000Z"#, #"40.004000001Z"#),
      (#""payload_length":24"#, #""payload_length":25"#),
      (#""type":"error_response","connection":1"#, #""type":"x","connection":1"#),
    ])
  func differs(text: String, other: String) throws {
    try Command.inFolder { command in
      try command.trace("items-that-do-not-fit.pcap")
      let found = try SecondDecoder(command: command).compare("items-that-do-not-fit.pcap") { records in
        let changed = records.replacingOccurrences(of: text, with: other)
        #expect(changed != records)
        return changed
      }
      #expect(found.status == 1 && found.counts["differences", default: 0] > 0, "\(found.text)")
    }
  }

  /// Every fault that a load offers, on connections that are worn out or shut down.
  /// `load --faults malformed=0.002` had 1,996 accepted where the capture had 219.
  @Test(
    "Load, gateway and both decoders agree about each notification",
    .enabled(if: LoopbackCapture.isPossible), arguments: ["lifetime", "shutdown"])
  func everyNotification(end: String) throws {
    try SimulatorProcess.inFolder { command in
      let simulator = try SimulatorProcess(
        ["--plain", "--no-feedback", "--reject", "every=900,status=1", "--response-delay", "1ms..20ms"]
          + (end == "shutdown" ? ["--shutdown-after", "400"] : []), in: command)
      let capture = try LoopbackCapture(port: simulator.gateway, file: "run.pcap", in: command)
      let count = 6_000
      let outcome = try LoadProcess.start(
        simulator,
        [
          "--plain", "--count", "\(count)", "--connections", "3", "--threads", "2", "--rate", "3k/s",
          // Otherwise it begins at the start of the run.
          "--expiration", "\(Self.expiration)",
          "--faults", Self.faults.map { "\($0.rawValue)=5e-4" }.joined(separator: ","),
        ] + (end == "lifetime" ? ["--connection-count", "300"] : []), in: command
      ).end()
      #expect(outcome.status == 0, "\(outcome.output)\(outcome.errors)")
      let ledger = try simulator.stop()
      try capture.end()
      let result = try LoadProcess.result(in: command)
      for cause in [end, "rejected"] { #expect((result.connections.closed.byName[cause] ?? 0) > 0) }

      let second = SecondDecoder(command: command, ports: ["--port", "\(simulator.gateway)=gateway"])
      let found = try second.compare("run.pcap")
      #expect(found.status == 0 && found.counts["differences"] == 0, "\(found.text)")
      for kind in ["misfit", "rejected", "discarded", "fate"] { #expect(found.counts[kind, default: 0] > 0, "\(kind)") }

      let connections = try second.connections(of: "run.pcap")
      try expectSameBooks(connections, result, ledger)
      try expectPlanned(connections, count: count, result)
    }
  }

  private static let faults = WorkloadPlan.Fault.allCases
  private static let marker: UInt32 = 0xffff_ffff
  private static let expiration: UInt32 = 2_000_000_000

  /// Connection by connection as the gateway has it, in sum as the load has it.
  private func expectSameBooks(
    _ connections: [SecondDecoder.Connection], _ result: RunResult, _ ledger: Ledger
  ) throws {
    #expect(connections.count == ledger.connections.count && connections.count == result.connections.opened)
    let own = Dictionary(grouping: connections, by: \.client)
    for theirs in ledger.connections {
      let matching = own[theirs.client] ?? []
      // A port that came twice is told apart by nothing here.
      guard matching.count == 1, let connection = matching.first, let frames = connection.frames else {
        #expect(matching.count > 1, "\(theirs.client)")
        continue
      }
      #expect(connection.count("accepted") == theirs.accepted, "\(theirs.client)")
      #expect(connection.count("rejected") == (theirs.rejected == nil ? 0 : 1), "\(theirs.client)")
      let unread = frames.count - theirs.received
      #expect(unread >= 0)
      #expect(connection.count("discarded") + connection.count("unknown") - unread == theirs.discarded)
      let refusals = connection.responses?.filter { $0.status != 10 } ?? []
      #expect(refusals.map(\.notification) == (theirs.rejected.map { [$0.notification] } ?? []), "\(theirs.client)")
      #expect(refusals.map(\.status) == (theirs.rejected.map { [$0.status] } ?? []), "\(theirs.client)")
    }
    func total(_ fate: String) -> Int { connections.reduce(0) { $0 + $1.count(fate) } }
    let answered = try #require(result.sendings.binary.markersAnswered)
    #expect(total("accepted") == result.sendings.accepted)
    #expect(total("accepted") == ledger.gateway.accepted)
    #expect(total("rejected") == result.sendings.rejected + answered)
    let unsent =
      result.sendings.written + result.sendings.binary.markers - connections.reduce(0) { $0 + ($1.frames?.count ?? 0) }
    #expect(unsent >= 0)
    #expect(
      total("discarded") + total("unknown") == result.sendings.discarded + result.sendings.unknown
        + result.sendings.binary.markers - answered - unsent)
  }

  /// Each frame is, byte by byte, what its number stands for in the plan; each number was accepted once, or refused with
  /// the status of its fault.
  private func expectPlanned(
    _ connections: [SecondDecoder.Connection], count: Int, _ result: RunResult
  ) throws {
    var plan = WorkloadPlan()
    plan.expirations = .init(.at(Self.expiration))
    for fault in Self.faults { plan.faults[fault] = 5e-4 }
    let workload = try Workload(plan)
    let statuses: [WorkloadPlan.Fault: Int] = [
      .invalidToken: 8, .tokenSize: 5, .missingToken: 2, .missingPayload: 4, .oversize: 7, .malformed: 128,
    ]
    var accepted: [Int] = []
    var rejected: [Int: Int] = [:]
    for connection in connections {
      let frames = try #require(connection.frames)
      for frame in frames where frame.identifier != Self.marker {
        let number = UInt64(try #require(frame.identifier)) - 1
        #expect(frame.bytes == hexadecimal(workload, number))
        #expect(frame.misfit == (workload.fault(of: number) == .malformed))
        if frame.fate == "accepted" { accepted.append(Int(number)) }
      }
      for response in connection.responses ?? [] where response.status != 10 {
        let frame = frames[try #require(response.notification)]
        let identifier = try #require(frame.identifier)
        guard identifier != Self.marker else { continue }
        let before = rejected.updateValue(response.status, forKey: Int(identifier) - 1)
        #expect(before == nil)
      }
    }
    #expect(accepted.count == result.notifications.accepted && rejected.count == result.notifications.rejected)
    #expect((accepted + rejected.keys).sorted() == Array(0..<count))
    for number in 0..<count {
      let fault = workload.fault(of: UInt64(number))
      // What nothing is wrong with is refused by the rule, or not at all.
      let expected = fault.map { [statuses[$0]] } ?? [nil, 1]
      #expect(expected.contains(rejected[number]), "\(number) \(String(describing: fault))")
    }
  }

  private func hexadecimal(_ workload: Workload, _ number: UInt64) -> String {
    var output = ByteWriter()
    workload.encode(number, into: &output)
    return Array(copying: output.bytes).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
  }
}
