import Analysis
import BinaryProtocol
import Bytes
import Dissection
import Foundation
import LoadTest
import PacketCapture
import Payload
import Records
import TLSDecryption

/// Does one job of apnscope's a number of times, and prints how many notifications went through it: callgrind counts the
/// instructions.
///
///     InstructionCount JOB TIMES [CAPTURE [KEYLOG]]
@main
struct InstructionCount {
  /// The jobs, by the names they have in Benchmarks/instructions.txt.
  enum Job: String, CaseIterable {
    /// A capture to JSON Lines that nobody takes.
    case decode
    /// A capture to the counts of `inspect`, payloads not judged.
    case inspect
    /// The notifications of a load, as bytes of the binary protocol.
    case encode
    /// The gateway's rules over those bytes.
    case session
    /// The rules of payloads over one of each kind.
    case judge
    /// The judgements of payloads that all differ and are made of one template.
    case template
  }

  /// Why nothing was counted.
  struct Failure: Error, CustomStringConvertible {
    let description: String
  }

  static func main() {
    do {
      print(try run(Array(CommandLine.arguments.dropFirst())))
    } catch {
      FileHandle.standardError.write(Data("InstructionCount: \(error)\n".utf8))
      exit(EXIT_FAILURE)
    }
  }

  static func run(_ arguments: [String]) throws -> Int {
    guard arguments.count >= 2, let job = Job(rawValue: arguments[0]), let times = Int(arguments[1]), times > 0 else {
      let jobs = Job.allCases.map(\.rawValue).joined(separator: "|")
      throw Failure(description: "usage: InstructionCount \(jobs) TIMES [CAPTURE [KEYLOG]]")
    }
    let files = Array(arguments.dropFirst(2))
    switch job {
    case .decode: return try read(files, times) { JSONLinesWriter { _ in true } }
    case .inspect: return try read(files, times) { Inspection() }
    case .encode: return try encode(times)
    case .session: return try judgeFrames(times)
    case .judge: return judgePayloads(times)
    case .template: return try matchTemplate(times)
    }
  }

  /// One thread beside the one that reads, as more would share the work by chance.
  static func read<Sink: RecordSink>(_ files: [String], _ times: Int, into sink: () -> Sink) throws -> Int {
    guard let path = files.first else { throw Failure(description: "a capture is needed") }
    var notifications = 0
    for _ in 0..<times {
      let secrets = Secrets()
      if files.count > 1 {
        secrets.add(try KeyLog(contentsOf: files[1], maximumLength: 1 << 24, maximumLines: 100_000))
      }
      let shared = SharedSink(sink())
      var dissection = Dissection(into: shared, options: DissectionOptions(), secrets: secrets)
      let input = try CaptureInput.open(path, options: CaptureOptions())
      _ = try dissection.read(input, source: path) { _ in true }
      dissection.finish()
      notifications += dissection.summary.notifications
    }
    return notifications
  }

  // MARK: made notifications

  static let batch = 1_000

  static func encode(_ times: Int) throws -> Int {
    let workload = try Workload(WorkloadPlan())
    var output = ByteWriter(capacity: batch * 512)
    for time in 0..<times {
      output.removeAll()
      for index in 0..<batch { workload.encode(UInt64(time * batch + index), into: &output) }
    }
    return times * batch
  }

  static func judgeFrames(_ times: Int) throws -> Int {
    let workload = try Workload(WorkloadPlan())
    var frames = ByteWriter(capacity: batch * 512)
    for index in 0..<batch { workload.encode(UInt64(index), into: &frames) }
    var session = GatewaySession()
    for _ in 0..<times { _ = session.receive(frames.bytes) { _ in nil } }
    guard session.ending == nil else { throw Failure(description: "the gateway's rules refused a notification") }
    return session.accepted
  }

  static func matchTemplate(_ times: Int) throws -> Int {
    let id = String(repeating: "0", count: 80)
    let payloads = (0..<batch).map { number in
      let alert = #"{"title":"Harbour","body":"Ferry \#(number) leaves in ten minutes"}"#
      return Array(#"{"aps":{"alert":\#(alert),"badge":1},"id":"\#(id)"}"#.utf8)
    }
    var judgement = JudgementTable(limit: 1)
    let first = payloads[0]
    let index = judgement.add(1, first.rawBytes, in: PayloadEnvironment()) { _ in }
    guard let template = judgement.template(ofLast: first.rawBytes) else {
      throw Failure(description: "the payload has no template")
    }
    var templates = TemplateTable()
    templates.add(template, environment: 1, judgement[index]) { _ in }
    for _ in 0..<times {
      for payload in payloads where templates.countLatest(payload.rawBytes, environment: 1) == nil {
        throw Failure(description: "a payload was not made of the template")
      }
    }
    return times * batch
  }

  static func judgePayloads(_ times: Int) -> Int {
    let samples = PayloadSamples(seed: 1)
    let payloads = PayloadKind.allCases.flatMap { kind in
      (0..<8).map { samples.payload(kind, number: $0) }
    }
    var judge = PayloadJudge()
    var judged = 0
    for _ in 0..<times {
      for payload in payloads {
        _ = judge.judge(payload.rawBytes)
        judged += 1
      }
    }
    return judged
  }
}
