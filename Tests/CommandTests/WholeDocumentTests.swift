import Foundation
import Measurement
import TestSupport
import Testing

/// Files that commands write as a whole: results, ledgers, reports, charts.
@Suite("whole documents", .waiting)
struct WholeDocumentTests {
  /// In a folder with a result, `run.json`.
  private func inFolder<T>(_ body: (Command) throws -> T) throws -> T {
    try Command.inFolder { command in
      let encoder = JSONEncoder()
      encoder.keyEncodingStrategy = .convertToSnakeCase
      try command.write([UInt8](encoder.encode(RunResult())), "run.json")
      return try body(command)
    }
  }

  /// The command where no file can become longer than so many KiB, as on a disk that is full; its exit code is said last.
  private func full(_ arguments: String, kibibytes: Int = 0, in command: Command) throws -> Outcome {
    try command.shell(
      "(trap '' XFSZ; ulimit -f \(kibibytes); exec $apnscope \(arguments)) 2>&1 >/dev/null | cat; exit ${PIPESTATUS[0]}"
    )
  }

  private func names(in command: Command, _ folder: String = ".") throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: command.folder.appending(path: folder).path)
      .filter { $0 != ".output" && $0 != ".errors" }.sorted()
  }

  private func mode(_ name: String, in command: Command) throws -> Int? {
    let path = command.folder.appending(path: name).path
    return (try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? NSNumber)?.intValue
  }

  @Test(
    "On a full disk the earlier file stays as it was, and nothing is left beside it: 74",
    arguments: [
      "merge run.json --output out.json",
      "simulate --plain --gateway 127.0.0.1:0 --no-feedback --for 1ms --ledger out.json",
      "load --plain --gateway 127.0.0.1:1 --give-up 1ms --output out.json",
    ])
  func fullDisk(arguments: String) throws {
    try inFolder { command in
      // A load that reaches nothing writes no result, but must not touch the earlier one either.
      let isLoad = arguments.hasPrefix("load")
      for earlier in [nil, "what there was\n"] {
        if let earlier { try command.write(Array(earlier.utf8), "out.json") }
        let outcome = try full(arguments, in: command)
        #expect(outcome.status == (isLoad ? 69 : 74), "\(outcome.output)")
        #expect(isLoad || outcome.output.contains("out.json: File too large"), "\(outcome.output)")
        #expect(try names(in: command) == (earlier == nil ? [] : ["out.json"]) + ["run.json"])
        if let earlier { #expect(try command.read("out.json") == earlier) }
      }
    }
  }

  @Test("A report that has no room for all of its files leaves all of the earlier one, also those that had room")
  func fullFolder() throws {
    try inFolder { command in
      #expect(try command.run("report", "run.json", "--output", "page").status == 0)
      let before = try names(in: command, "page")
      #expect(before.contains("run.json") && before.contains("report.html"))
      // Room for the copy of the result, and not for the page.
      let room = try command.read("run.json").utf8.count / 1_024 + 1
      #expect(try command.read("page/report.html").utf8.count > room * 1_024)
      for name in before { try command.write(Array("the earlier \(name)".utf8), "page/\(name)") }
      let outcome = try full("report run.json --output page", kibibytes: room, in: command)
      #expect(outcome.status == 74 && outcome.output.contains("File too large"), "\(outcome.output)")
      #expect(try names(in: command, "page") == before)
      for name in before { #expect(try command.read("page/\(name)") == "the earlier \(name)") }
    }
  }

  @Test("What a link leads to is replaced, with its mode, or made; the link stays")
  func links() throws {
    try inFolder { command in
      let outcome = try command.shell(
        """
        mkdir real && echo earlier > real/old.json && chmod 640 real/old.json
        ln -s real/old.json old.json && ln -s ../new.json real/step.json && ln -s real/step.json new-link.json
        $apnscope merge run.json --output old.json >/dev/null && $apnscope merge run.json --output new-link.json \
        >/dev/null
        """)
      #expect(outcome.status == 0, "\(outcome.errors)")
      #expect(try names(in: command) == ["new-link.json", "new.json", "old.json", "real", "run.json"])
      #expect(try names(in: command, "real") == ["old.json", "step.json"])
      for name in ["old.json", "new-link.json", "real/step.json"] {
        let path = command.folder.appending(path: name).path
        #expect(throws: Never.self, "\(name)") { try FileManager.default.destinationOfSymbolicLink(atPath: path) }
      }
      for name in ["real/old.json", "new.json"] { #expect(try command.read(name).hasSuffix("}\n"), "\(name)") }
      #expect(try mode("real/old.json", in: command) == 0o640)
      // As the process's mask lets it.
      #expect(try mode("new.json", in: command).map { $0 & ~0o644 } == 0)
    }
  }

  @Test("Pipes, devices and descriptors are written directly")
  func direct() throws {
    try inFolder { command in
      let full = try command.shell("$apnscope merge run.json --output /dev/full >/dev/null")
      #expect(full.status == 74 && full.errors.hasSuffix("apnscope: /dev/full: No space left on device\n"))
      let outcome = try command.shell(
        """
        mkfifo pipe && (cat pipe > from-pipe &) && $apnscope merge run.json --output pipe >/dev/null &&
        $apnscope merge run.json --output /dev/stderr 2> from-descriptor >/dev/null &&
        $apnscope merge run.json --output /dev/stdout --format json | cat > from-output &&
        $apnscope merge run.json --output >(cat > from-substitution) >/dev/null
        """)
      #expect(outcome.status == 0, "\(outcome.errors)")
      func isWhole(_ name: String) -> Bool {
        waitUntil { (try? command.read(name).hasSuffix("}\n")) == true }
      }
      for name in ["from-pipe", "from-descriptor", "from-output", "from-substitution"] {
        #expect(isWhole(name), "\(name)")
      }
      #expect(try names(in: command).filter { $0.hasPrefix(".") } == [])
    }
  }

  @Test(
    "A place that cannot be written is known before the run: 74, and nothing was sent or made",
    arguments: [
      ("missing/run.json", "missing/run.json: No such file or directory"), (".", ".: Is a directory"),
      ("new/", "new/: Is a directory"), ("run.json/x", "run.json/x: Not a directory"),
      ("/proc/run.json", "/proc/run.json: "), ("loop", "loop: Too many levels of symbolic links"),
    ])
  func early(path: String, text: String) throws {
    try inFolder { command in
      _ = try command.shell("ln -s loop loop")
      // There is nobody, which it would say if it had tried.
      let outcome = try command.run(
        "load", "--plain", "--gateway", "127.0.0.1:1", "--give-up", "1ms", "--output", path)
      #expect(outcome.status == 74)
      #expect(outcome.errors.hasPrefix("apnscope: \(text)"), "\(outcome.errors)")
      #expect(try names(in: command) == ["loop", "run.json"])
    }
  }
}
