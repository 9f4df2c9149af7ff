import ArgumentParser
import Bytes
import CommandFiles
import Glibc
import InterfaceCapture
import Measurement
import Pipeline
import PushModel
import Reporting

@main
struct Apnscope: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "apnscope",
    abstract: "Makes the binary provider protocol of the Apple Push Notification service visible and measurable.",
    discussion: """
      The protocol (gateway on TCP 2195, feedback on 2196) has no acknowledgement: success is silence, an error arrives \
      late, and everything written after the bad notification is lost. apnscope shows which notifications were lost, \
      simulates a gateway to test providers against, and measures how many notifications a gateway takes.

      Choose a command by the question:
        What went wrong?         inspect summarizes a recording on one screen;
                                 decode writes it as structured records;
                                 follow tells what became of each notification;
                                 annotate comments its packets for Wireshark;
                                 dissector teaches Wireshark the protocol;
                                 redact makes a copy that is safe to pass on.
        Is my payload correct?   lint names what is wrong with it and where;
                                 render shows what a user would have seen.
        Is my provider correct?  simulate runs a gateway and a feedback service
                                 with faults on demand; identity makes their
                                 certificates; devices receives as a fleet.
        How much does it take?   load sends notifications at a set rate or as
                                 fast as possible and reports the fate of each;
                                 merge joins results of several machines;
                                 result shows one again, or as CSV;
                                 capacity finds the highest sustained rate.
        Is it better now?        compare separates changes from chance, history
                                 lists stored results, report makes a page.
        What does a field mean?  schema describes every field of every output.

      Recordings are pcap, pcapng or snoop files, or dumps of one direction; TLS is decrypted with a key log.

      'apnscope demo' shows all of it in 20 seconds. A first session, for example:
        apnscope identity --directory ids --topic com.example.app
        apnscope simulate --identity ids --reject every=5000 --ledger sim.json &
        apnscope load --identity ids --rate 10k/s --for 10s --output run.json
        kill %1; wait
        apnscope report run.json --ledger sim.json --output report

      Exit codes: 0 done; 64 usage; 65 not a capture, an unusable file, or --strict found damage or nothing to \
      read; 66 cannot open a file; 69 port in use, gateway unreachable, or nothing accepted; 70 the books of a load do \
      not balance, or a part is missing; 74 cannot read or write; 76 a gateway made errors; 99 a threshold failed; 130 \
      interrupted.
      """,
    version: Environment.build(version, commit),
    subcommands: [
      Decode.self, Inspect.self, Follow.self, Annotate.self, Redact.self, Lint.self, Render.self, Simulate.self,
      Load.self, Devices.self, Merge.self, ResultCommand.self, Compare.self, Capacity.self, Report.self, History.self,
      IdentityCommand.self,
      SchemaCommand.self, DissectorCommand.self, DemoCommand.self,
    ])

  static func main() async {
    Descriptors.requireSome()
    refuseUnknownCommand(Array(CommandLine.arguments.dropFirst()))
    showShortHelp(Array(CommandLine.arguments.dropFirst()))
    if let shell = CompletionScript.shell(askedForBy: Array(CommandLine.arguments.dropFirst())) {
      print(CompletionScript.text(for: shell))
      exit(withError: ExitCode.success)
    }
    do {
      var command = try await parsed(ArgumentBytes.arguments)
      do {
        if var command = command as? any AsyncParsableCommand { try await command.run() } else { try command.run() }
      } catch let error as ValidationError {
        // The error is known only after files were read and options combined. The library would show the whole usage.
        refuse(error, by: type(of: command))
      } catch let failure as FileFailure {
        throw ExitStatus.complaining(of: failure)
      } catch let failure as DocumentFailure {
        throw ExitStatus.complaining(of: failure)
      } catch let failure as InterfaceCaptureFailure {
        throw ExitStatus.complaining(of: failure)
      } catch let refusal as ReadingRefusal {
        refuse(ValidationError(refusal.text), by: type(of: command))
      }
    } catch {
      let code = exitCode(for: error)
      // Help is printed to standard output by the library; other messages may repeat the arguments.
      if code.isSuccess { exit(withError: error) }
      let text = voiced(RedactedArguments.redacted(fullMessage(for: error)))
      if !text.isEmpty { StandardError.write(ControlCharacters.escaped(text, keepsLines: true) + "\n") }
      exit(withError: code)
    }
  }

  /// Names an unknown option before anything else that is wrong, with the one that may be meant.
  private static func parsed(_ arguments: [String]) async throws -> any ParsableCommand {
    do {
      return try await asyncParseAsRoot(arguments)
    } catch {
      if !exitCode(for: error).isSuccess,
        let command = configuration.subcommands.first(where: { $0._commandName == arguments.first }),
        let complaint = FamiliarOption.complaint(about: arguments, to: command)
      {
        refuse(ValidationError(complaint), by: command)
      }
      throw error
    }
  }

  /// Shows the short help of a command, and exits, if it is asked for.
  private static func showShortHelp(_ arguments: [String]) {
    guard let name = arguments.first, ShortHelp.isAsked(by: arguments),
      let command = configuration.subcommands.first(where: { $0._commandName == name }),
      let help = try? ShortHelp(
        of: command, named: name, usage: usageString(for: command), columns: Terminal.columns(of: STDOUT_FILENO))
    else { return }
    print(help.text)
    exit(withError: ExitCode.success)
  }

  /// The library would report the rest as unexpected arguments, without a suggestion.
  private static func refuseUnknownCommand(_ arguments: [String]) {
    guard let typed = arguments.first == "help" ? arguments.dropFirst().first : arguments.first, !typed.hasPrefix("-")
    else { return }
    let names = configuration.subcommands.map { $0._commandName } + ["help"]
    guard !names.contains(typed) else { return }
    let shown = typed.count <= 80 ? typed : "\(typed.prefix(80))…"
    refuse(ValidationError("Unknown command '\(shown)'. \(suggestion(for: typed, of: names))"), by: Apnscope.self)
  }

  /// The intended command for a misspelt, abbreviated or missing name.
  static func suggestion(for typed: String, of names: [String]) -> String {
    let abbreviated = names.filter { $0.hasPrefix(typed) && !typed.isEmpty }
    let meant = abbreviated.isEmpty ? nearest(typed.lowercased(), of: names).map { [$0] } ?? [] : abbreviated
    if !meant.isEmpty { return "Did you mean \(meant.map { "'\($0)'" }.joined(separator: " or "))?" }
    if Paths.exists(typed) {
      return "It is a file: use 'apnscope inspect' for a recording, 'apnscope report' for a result."
    }
    return "Available: \(names.joined(separator: ", "))."
  }

  /// An error of the command line as all errors are told: the program, and a sentence. The library says "Error:" instead,
  /// and ends some sentences with a full stop and others not.
  static func voiced(_ text: String) -> String {
    guard text.hasPrefix(libraryPrefix) else { return text }
    let rest = text.dropFirst(libraryPrefix.count)
    let sentence = rest.prefix { $0 != "\n" }
    let isEnded = sentence.last.map { ".?!:".contains($0) } ?? true
    return "\(_commandName): \(sentence)\(isEnded ? "" : ".")\(rest.dropFirst(sentence.count))"
  }

  private static let libraryPrefix = "Error: "

  /// Reports the error like one found while the command line is parsed.
  private static func refuse(_ error: ValidationError, by command: any ParsableCommand.Type) -> Never {
    let name = command == Apnscope.self ? "" : " \(command._commandName)"
    StandardError.write(
      """
      \(voiced(libraryPrefix + ControlCharacters.escaped(RedactedArguments.redacted(error.message), keepsLines: true)))
      Usage: \(usageString(for: command))
        See '\(_commandName)\(name) --help' for more information.

      """)
    exit(withError: ExitCode.validationFailure)
  }
}
