import ArgumentParser
import CommandFiles
import LoadTest
import Reporting
import TLSTransport

extension TokenList {
  /// Reads the tokens in a file; `-` is standard input. Complains and throws an exit code.
  init(contentsOf path: String) throws {
    self.init()
    var lines = try RecordLines(path)
    while try lines.next() {
      do {
        try add(line: lines.text)
      } catch {
        throw lines.failure(error)
      }
    }
    guard count > 0 else {
      complain("\(path): no tokens; expected one a line, in hexadecimal")
      throw ExitStatus.damaged
    }
  }
}

extension PayloadList {
  /// Reads the payloads in a file; `-` is standard input. Complains and throws an exit code, also of a payload that is
  /// too long for the commands.
  init(contentsOf path: String, for commands: WorkloadPlan.Mix<UInt8>) throws {
    var reader = PayloadListReader()
    var lines = try RecordLines(path)
    var number = 0
    while try lines.next() {
      number += 1
      do {
        try reader.add(line: lines.text, number: number)
      } catch {
        throw lines.failure(error)
      }
    }
    self = reader.list
    guard entries.contains(where: { $0.weight > 0 }) else {
      complain("\(path): \(entries.isEmpty ? "no payloads; expected one a line" : "no payload has a weight above 0")")
      throw ExitStatus.damaged
    }
    if let long = firstTooLong(for: commands) {
      complain("\(path)\(long.line.map { ":\($0)" } ?? ""): \(long.problem)")
      throw ExitStatus.damaged
    }
  }
}

extension TargetOptions {
  /// Keeps of the listed payloads those of the topic that the run pushes to, which the certificate decides; says how many
  /// are of other topics, and throws when that is all of them.
  ///
  /// Without TLS no certificate names a topic: payloads of several topics cannot be told apart by the gateway, and are
  /// refused.
  func selectTopic(of file: String?, in plan: inout LoadPlan) throws {
    guard let file, case .listed(var list) = plan.workload.payload, !list.topics.isEmpty else { return }
    let topics = list.topics.sorted().joined(separator: ", ")
    guard let topic = try runTopic() else {
      guard list.topics.count > 1 else { return }
      throw ValidationError(
        "\(file) has payloads of several topics (\(topics)); \(plain ? "without TLS there is none" : "the certificate names none")."
      )
    }
    let others = list.select(topic: topic)
    guard list.entries.contains(where: { $0.weight > 0 }) else {
      complain("\(file): no payload is for the topic \(topic) of the identity; the file has payloads for \(topics)")
      throw ExitStatus.damaged
    }
    if others > 0 {
      complain(
        "\(file): \(grouped(others)) of \(grouped(others + list.entries.count)) payloads are for other topics than \(topic), and are not sent"
      )
    }
    plan.workload.payload = .listed(list)
  }
}
