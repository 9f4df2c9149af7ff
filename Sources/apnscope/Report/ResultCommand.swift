import ArgumentParser
import CommandFiles
import Reporting

extension ResultTable.Content: ExpressibleByArgument {}

struct ResultCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "result",
    abstract: "Show a stored result of a load again, or its course as CSV.",
    usage: "apnscope result [<options>] <result>",
    discussion: """
      Without options it writes the summary that 'load' wrote at the end. --csv writes a table for other programs: seconds \
      (rates, errors by status, connections, lag, processor time), connections (each span of a connection's life that the \
      result lists), or bins (written notifications in tenths of a second). Names and units are those of the document, which \
      'apnscope schema result' describes; an absent value is an empty cell.

      Examples:
        apnscope result run.json
        apnscope result --csv seconds run.json > seconds.csv
        apnscope load --identity ids --for 10s -o - | apnscope result --csv bins -

      Exit codes: 0 done; 64 usage; 65 not a result of 'load'; 66 cannot open the file; 74 cannot read or write.
      """)

  @Argument(
    help: ArgumentHelp("A result of 'load' or 'merge'; - for standard input.", valueName: "result"),
    completion: .file(extensions: ["json"]))
  var result: String

  @Option(help: ArgumentHelp("Write this table: seconds, connections or bins.", valueName: "table"))
  var csv: ResultTable.Content?

  @Option(
    name: .shortAndLong,
    help: ArgumentHelp("Write to this file. Default, and -: standard output.", valueName: "file"), completion: .file())
  var output: String?

  @OptionGroup var colour: ColourOption

  func validate() throws {
    try refuseConflicts(reading: [result], writing: [output.map { ("--output", $0) } ?? FilesInUse.standardOutput])
  }

  func run() throws {
    let run = try ResultDocument.read(result == "-" ? "/dev/stdin" : result)
    let outputs = try Outputs(OutputFile.file(output), isDirectory: false)
    let write = try outputs.open()
    let summary = LoadSummary(run).text + "\n"
    let text =
      csv.map { ResultTable(run, $0).text }
      ?? (OutputFile.file(output) == nil ? colour.layout.laidOut(summary) : summary)
    _ = write(Array(text.utf8).rawBytes)
    try outputs.check()
  }
}
