import ArgumentParser
import CommandFiles
import Dissection
import Glibc
import Synchronization
import TLSDecryption

/// The first of two readings of the same inputs, for what is known only at the end: the fates of notifications.
struct EarlyReading {
  /// How the records of the second reading tell fates.
  let notation: FateNotation
  /// What the options name, for the second reading.
  let secrets: Secrets
  private let summary: SummaryRecord?
  private let connectionsNotKept: Int
  /// Ctrl-C ended standard input while it was kept; what had come is read.
  let isCut: Bool

  /// Reads the inputs if they can be read twice.
  ///
  /// - Parameter fates: `true`: standard input is kept until it ends, so that it can; `false`: nothing is read.
  init(_ inputs: [String], _ options: DecodingOptions, fates: Bool?) throws {
    secrets = try options.secrets.read(options.limits)
    isCut = try fates == true && RepeatableInput.require(inputs)
    guard fates != false, inputs.allSatisfy(RepeatableInput.isRepeatable) else {
      notation = fates == false ? .omitted : .ranges
      (summary, connectionsNotKept) = (nil, 0)
      return
    }
    let book = FateBook(maximumRanges: options.limits.maxFateRanges)
    let reading = try Reading(inputs, options, into: book, secrets: secrets, isQuiet: true)
    notation = .each(reading.sink)
    summary = reading.summary
    connectionsNotKept = reading.sink.connectionsNotKept
  }

  /// Says where the records do not have their fates.
  func complain(after second: SummaryRecord) {
    if connectionsNotKept > 0 {
      let (which, whose) =
        connectionsNotKept == 1 ? ("1 connection", "its") : ("\(connectionsNotKept) connections", "their")
      apnscope.complain(
        "the fates of \(which) are in 'fate' records and not in \(whose) notifications' (--max-fate-ranges)")
    }
    guard let summary, !Interrupt.isRequested else { return }
    if summary.packets != second.packets || summary.notifications != second.notifications {
      apnscope.complain("an input has changed while it was read; where fates differ, those in 'fate' records are right")
    }
  }
}

/// Inputs as they can be read more than once.
enum RepeatableInput {
  /// What it is opened by. Standard input that is a file is opened anew each time, if it must be.
  static func path(of input: String) -> String { input == "-" && isKept ? StandardInput.path : input }

  private static let kept = Atomic<Bool>(false)
  private static var isKept: Bool { kept.load(ordering: .relaxed) }

  /// Whether it is a file, or was made one. Standard input is read as it comes, also when it is a file.
  static func isRepeatable(_ input: String) -> Bool {
    if input == "-" { return isKept }
    var status = stat()
    // What is not there cannot be read at all.
    return unsafe stat(input, &status) != 0 || status.st_mode & S_IFMT == S_IFREG || status.st_mode & S_IFMT == S_IFDIR
  }

  /// Makes all inputs such that can be read again; what comes through a pipe is kept in an unnamed file. Ctrl-C ends it:
  /// what has come by then is the input, and `true` is returned.
  static func require(_ inputs: [String]) throws -> Bool {
    if inputs.contains("-") {
      if !StandardInput.isWholeFile { try StandardInput.keep(in: folder) { Interrupt.isRequested } }
      kept.store(true, ordering: .relaxed)
    }
    for input in inputs where !isRepeatable(input) {
      throw ValidationError("--fates reads its input twice, and \(input) is no file; give it as standard input (-).")
    }
    return Interrupt.take()
  }

  /// For what need not outlive the process.
  private static var folder: String {
    let folder = unsafe getenv("TMPDIR").map { unsafe String(cString: $0) } ?? ""
    return folder.isEmpty ? "/tmp/" : folder.hasSuffix("/") ? folder : folder + "/"
  }
}
