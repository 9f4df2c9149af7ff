import ArgumentParser
import CommandFiles
import FoundationEssentials
import Measurement
import OutputSchema

struct SchemaCommand: ParsableCommand {
  enum Kind: String, CaseIterable, ExpressibleByArgument {
    case records, stories, events
    case loadLog = "load-log"
    case judgements, renderings, result, ledger, fleet, received, capacity, inspection, comparison, plan

    var schema: Schema {
      switch self {
      case .records: .records
      case .stories: .stories
      case .events: .events
      case .loadLog: .loadLog
      case .judgements: .judgements
      case .renderings: .renderings
      case .result: .result
      case .ledger: .ledger
      case .fleet: .fleet
      case .received: .received
      case .capacity: .capacity
      case .inspection: .inspection
      case .comparison: .comparison
      case .plan: .plan
      }
    }
  }

  enum Format: String, CaseIterable, ExpressibleByArgument {
    case jsonSchema = "json-schema"
    case markdown, man
  }

  static let configuration = CommandConfiguration(
    commandName: "schema",
    abstract: "Describe every field of an output.",
    discussion: """
      Each output has one description: its fields, their types and units, when each is present, and what it means. It is \
      printed as a JSON Schema (draft 2020-12), as a page in Markdown, or as a manual page of section 5.

      The outputs:
        records      records of decode; the schema describes one line
        stories      records of follow; the schema describes one line
        events       events of simulate --log; the schema describes one line
        load-log     events of load --log; the schema describes one line
        judgements   output of lint --format json; the schema describes one line
        renderings   output of render --format json; the schema describes one line
        result       results of load and merge
        ledger       ledger of simulate --ledger
        fleet        result of devices --output, and of merge
        received     lines of devices --received; the schema describes one line
        capacity     result of capacity
        inspection   output of inspect --format json
        comparison   output of compare --format json
        plan         plan of load --print-plan and --plan, in TOML

      Renaming a field or changing its type increases "schema"; fields may be added.

      Examples:
        apnscope schema result > result.schema.json
        apnscope schema result ledger --format markdown | less
        apnscope schema records --format man | man -l -

      Exit codes: 0 done; 64 usage; 74 cannot write.
      """)

  @Argument(help: ArgumentHelp("Outputs to describe; Markdown accepts several.", valueName: "output"))
  var kinds: [Kind]

  @Option(help: "json-schema, markdown, or man (mdoc, section 5).")
  var format = Format.jsonSchema

  func validate() throws {
    if format != .markdown, kinds.count > 1 {
      throw ValidationError("--format \(format.rawValue) describes one output at a time.")
    }
  }

  func run() throws {
    let output = try TextOutput()
    for text in texts { output.say(text) }
    try output.check()
  }

  /// The texts, the last one without its line break.
  private var texts: [String] {
    let schemas = kinds.map(\.schema)
    return switch format {
    case .jsonSchema: schemas.map(\.jsonSchema.text)
    case .markdown: [String(Schema.markdown(of: schemas).dropLast())]
    case .man:
      schemas.map {
        let program = "apnscope \(Environment.build(Apnscope.version, Apnscope.commit))"
        return String($0.manual(program: program, date: Self.today).dropLast())
      }
    }
  }

  /// Today's date as in mdoc: "November 3, 2026".
  private static var today: String {
    let months = [
      "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
      "December",
    ]
    var calendar = Calendar(identifier: .gregorian)
    calendar.timeZone = TimeZone(secondsFromGMT: 0) ?? calendar.timeZone
    let parts = calendar.dateComponents([.year, .month, .day], from: Date.now)
    guard let year = parts.year, let month = parts.month, let day = parts.day, months.indices.contains(month - 1) else {
      return ""
    }
    return "\(months[month - 1]) \(day), \(year)"
  }
}
