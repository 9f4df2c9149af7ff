import ArgumentParser
import CommandFiles
import LoadTest

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
