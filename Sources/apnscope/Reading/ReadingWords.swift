import ArgumentParser
import Bytes
import CommandFiles
import InterfaceCapture
import PacketCapture
import Pipeline

// What a reading command says of a reading, and its exit codes.

extension ReadingNotice {
  /// The message; `nil`: none.
  var text: String? {
    switch self {
    case .interpreted(let input, let note): return "\(input.title): \(note)"
    case .warning(let input, let warning): return "\(input.title): \(warning)"
    case .failure(let input, let error):
      let path = input.name == "-" ? "-" : input.path
      let other = error.kind == .notACapture ? FileKind(ofFile: path, beginning: error.beginning) : nil
      return "\(input.title): \(other?.advice ?? error.message)"
    case .found: return nil
    case .leftOut(let folder, let files):
      let shown = 5
      let more = files.count > shown ? " and \(files.count - shown) more" : ""
      let list = files.prefix(shown).joined(separator: ", ")
      return "\(folder.title): left out, because they are no packet captures: \(list)\(more)"
    case .interface(let failure): return failure.text
    case .fatesNotKept(let connections):
      let (which, whose) = connections == 1 ? ("1 connection", "its") : ("\(connections) connections", "their")
      return
        "the fates of \(which) are in 'fate' records, not in those of \(whose) notifications (--max-fate-ranges)"
    case .answersNotKept(let count):
      return count == 1
        ? "1 answer is in a 'response' record, not in that of its notification (--max-fate-ranges)"
        : "\(count) answers are in 'response' records, not in those of their notifications (--max-fate-ranges)"
    case .selectionCut: return "some selected records are missing: the limit of --max-fate-ranges is reached"
    case .hasGrown:
      return "an input has grown while it was read; where fates differ, those in 'fate' records are valid"
    }
  }
}

extension InterfaceCaptureFailure {
  /// The message; `nil`: the program has written the reason itself.
  var text: String? {
    switch self {
    case .noProgram: "neither dumpcap nor tcpdump is installed; one of them is needed to capture"
    case .cannotStart(let program, let code): "\(program): \(SystemError.text(code))"
    case .cannotConnect(let interface, let code): "\(interface): \(SystemError.text(code))"
    case .ring(let failure): "\(failure)"
    case .ended(let interface, let program, let end, let reason, _):
      "\(interface): \(program) \(end.text)\(reason.isEmpty ? "" : ": \(reason)")"
    case .cannotList: nil
    }
  }
}

extension ProgramEnd {
  fileprivate var text: String {
    switch self {
    case .status(let status): "ended with status \(status)"
    case .signal(let number): "was killed by signal \(number)"
    }
  }
}

extension ReadingRefusal {
  var text: String {
    switch self {
    case .fatesOfInterface: return "--fates waits for the end of the input, and --interface has none."
    case .selectionOfInterface:
      return
        "--fate, --status and --topic depend on facts that are known only when connections have ended; --interface cannot be read twice."
    case .selectionOfPipe:
      return
        "--fate, --status and --topic depend on facts that are known only when connections have ended; add --fates, which waits for the end of standard input."
    case .notRepeatable(let input, let need):
      let what =
        switch need {
        case .fates: "--fates"
        case .selection: "The selection"
        case .comments: "annotate"
        }
      return "\(what) reads its input twice, and \(input.name) is not a file; use standard input (-)."
    }
  }
}

extension ExitStatus {
  static func code(for failure: ReadingFailure) -> ExitCode {
    switch failure {
    case .input(let error): code(for: error)
    case .interface(let failure): code(for: failure)
    case .ring: inputOutput
    }
  }

  static func code(for failure: InterfaceCaptureFailure) -> ExitCode {
    switch failure {
    case .noProgram, .cannotStart, .cannotList: unavailable
    case .cannotConnect: inputOutput
    case .ring(let failure): code(for: failure)
    case .ended(_, _, .status(1...), _, hasRead: false): cannotOpen
    case .ended: inputOutput
    }
  }

  /// Says why inputs cannot be read, and returns the exit code.
  static func complaining(of failure: InterfaceCaptureFailure) -> ExitCode {
    if let text = failure.text { complain(text) }
    return code(for: failure)
  }

  /// The exit status of a command, after all its output was written.
  ///
  /// - Parameter strict: damage, and inputs without notifications and feedback, are failures.
  static func code(for reading: ReadingOutcome, strict: Bool) -> ExitCode {
    if reading.isCopyCut { return interrupted }
    let failure = reading.failure.map { code(for: $0) }
    // Ctrl-C is the normal end of a live capture, whose earlier failures count.
    if Interrupt.isRequested { return reading.isLive ? failure ?? interrupted : interrupted }
    if let failure { return failure }
    guard strict else { return .success }
    let summary = reading.summary
    if !summary.hasRead { complain("no notifications or feedback found") }
    return summary.isDamaged || reading.hasWarnings || !summary.hasRead ? damaged : .success
  }
}
