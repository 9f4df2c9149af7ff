import ArgumentParser
import Bytes
import CommandFiles
import Payload

struct Render: ParsableCommand {
  enum Format: String, CaseIterable, ExpressibleByArgument {
    case text, json
  }

  static let configuration = CommandConfiguration(
    abstract: "Show what a user would have seen of a push.",
    usage: "apnscope render [<options>] <file>",
    discussion: """
      Renders a payload as a device does whose app is not in the foreground and may use alerts, badges and sounds: title, \
      subtitle and body with their arguments, buttons, badge, sound, whether the app wakes, and notes about what this \
      system ignores or what is missing, with the code of the rule in 'apnscope lint'. The file contains one payload, one \
      on each line (JSON Lines), or records of 'apnscope decode'.

      Texts are looked up in LANGUAGE.lproj/Localizable.strings of the folder --strings, without a fall-back to another \
      language, and buttons of categories in the file --categories. --ios 8 stands for 8.2 and later. Close, View, Options \
      and OK are names: a device shows them in its language.

      Examples:
        apnscope render payload.json --ios 9
        apnscope render payload.json --language ja --strings App/Resources
        apnscope render payload.json --ios 8 --categories categories.json
        apnscope decode capture.pcap | apnscope render - --format json

      Exit codes: 0 done; 64 usage; 65 a file that cannot be used; 66 cannot open a file; 74 cannot read or write.
      """)

  @Argument(help: ArgumentHelp("Payloads to show; - is standard input.", valueName: "file"), completion: .file())
  var file: String

  @Option(help: ArgumentHelp("The system: 7, 8, 9 or 10.", valueName: "version"))
  var ios = 10

  @Option(help: "text (for people) or json (a line with an object for each payload).")
  var format = Format.text

  @OptionGroup(title: "The app") var app: AppResourceOptions
  @OptionGroup(title: "What is read") var reading: PayloadInputOptions

  func validate() throws {
    if SystemVersion(rawValue: ios) == nil { throw ValidationError("--ios must be 7, 8, 9 or 10 (got \(ios)).") }
  }

  func run() throws {
    Interrupt.watch()
    guard let system = SystemVersion(rawValue: ios) else { return }
    let resources = try app.resources()
    let input = try PayloadInput(file, reading)
    let output = try TextOutput()
    var isFirst = true
    try input.eachItem { item in
      let shown = PayloadRendering(
        of: item.payload.rawBytes, on: system, language: app.language, resources: resources)
      switch format {
      case .text:
        if !isFirst { output.say("") }
        if let line = item.line { output.say("\(ControlCharacters.escaped(input.name)):\(line)") }
        for line in shown.lines(system, language: app.language) { output.say(line) }
      case .json: output.say(shown.object(system, language: app.language, line: item.line))
      }
      isFirst = false
      return !Interrupt.isRequested
    }
    try output.check()
    if Interrupt.isRequested { throw ExitStatus.interrupted }
  }
}

extension PayloadRendering {
  /// For people, one line per part.
  func lines(_ system: SystemVersion, language: String) -> [String] {
    var lines = ["iOS \(system == .iOS8 ? "8.2" : "\(system.rawValue)"), \(ControlCharacters.escaped(language))"]
    func add(_ name: String, _ text: String?) {
      guard let text else { return }
      let shown = ControlCharacters.escaped(text, keepsLines: true)
      for (index, line) in shown.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
        let label = index == 0 ? name : ""
        lines.append("  \(label)\(String(repeating: " ", count: 11 - label.count))\(line)")
      }
    }
    func list(_ words: [String]) -> String? { words.isEmpty ? nil : words.map { "[\($0)]" }.joined(separator: " ") }
    add("title", title)
    add("subtitle", subtitle)
    add("body", body)
    add("buttons", list(buttons.dialog))
    add("options", list(buttons.options))
    add("compact", list(buttons.compact))
    add("badge", badge.map { $0 == 0 ? "0 (cleared)" : "\($0)" })
    add("sound", sound)
    if wakesApp { add("background", "the app is woken") }
    if mayBeChanged { add("mutable", "the app's extension may change the texts: this is shown if it fails") }
    for note in notes {
      add("note", "\(note.rawValue): \(note.explanation)\(note.rule.map { " (\($0.code))" } ?? "")")
    }
    return lines
  }

  /// For programs: one object.
  func object(_ system: SystemVersion, language: String, line: Int?) -> String {
    var writer = ByteWriter(capacity: 512)
    func key(_ name: StaticString, _ writer: inout ByteWriter) {
      if writer.count > 1 { writer.write(",") }
      writer.write("\"")
      writer.write(name)
      writer.write("\":")
    }
    func text(_ name: StaticString, _ value: String?, _ writer: inout ByteWriter) {
      key(name, &writer)
      if let value { writer.write(jsonString: value) } else { writer.write("null") }
    }
    func list(_ values: [String], _ writer: inout ByteWriter) {
      writer.write("[")
      for (index, value) in values.enumerated() {
        if index > 0 { writer.write(",") }
        writer.write(jsonString: value)
      }
      writer.write("]")
    }
    writer.write("{")
    if let line {
      key("line", &writer)
      writer.write(decimal: line)
    }
    key("ios", &writer)
    writer.write(decimal: system.rawValue)
    text("language", language, &writer)
    text("title", title, &writer)
    text("subtitle", subtitle, &writer)
    text("body", body, &writer)
    key("buttons", &writer)
    writer.write("{\"dialog\":")
    list(buttons.dialog, &writer)
    writer.write(",\"options\":")
    list(buttons.options, &writer)
    writer.write(",\"compact\":")
    list(buttons.compact, &writer)
    writer.write("}")
    key("badge", &writer)
    if let badge { writer.write(decimal: badge) } else { writer.write("null") }
    text("sound", sound, &writer)
    key("background", &writer)
    if wakesApp { writer.write("true") } else { writer.write("false") }
    key("mutable", &writer)
    if mayBeChanged { writer.write("true") } else { writer.write("false") }
    key("notes", &writer)
    list(notes.map(\.rawValue), &writer)
    key("rules", &writer)
    list(Set(notes.compactMap(\.rule)).sorted().map(\.code), &writer)
    writer.write("}")
    return String(decoding: Array(copying: writer.bytes), as: UTF8.self)
  }
}

extension PayloadRendering.Note {
  /// The note in words.
  var explanation: String {
    switch self {
    case .alertIgnored: "the alert is neither a text nor a dictionary"
    case .argsNotStrings: "arguments that are no strings are shown as they were written"
    case .argsTooFew: "an argument is missing, so its placeholder stays"
    case .backgroundUnsure: "content-available is not the number 1, so the app may not wake"
    case .badgeIgnored: "the badge is not a whole number of 0 or more"
    case .categoryIgnored: "this system ignores the category, or there is no alert for its buttons"
    case .categoryUnknown: "the app has no such category"
    case .invalid: "the payload is no JSON object, or its aps no dictionary"
    case .keyMissing: "the table of the language lacks a key"
    case .mutableIgnored: "the app's extension is not called"
    case .nothingShown: "there is neither text nor badge nor sound"
    case .soundDefault: "the sound is no name of a sound file, so the default is played"
    case .soundEmpty: "the sound is empty, so none is played"
    case .soundIgnored: "the sound is not a string"
    case .subtitleIgnored: "this system has no subtitles, or there is no text for one"
    case .textAndKey: "a text and its key are both given; reports differ on which one is shown"
    case .textCut: "a text is longer than 64 KiB, and its beginning is shown"
    case .threadIgnored: "this system has no groups of notifications"
    case .titleIgnored: "this system has no titles"
    case .titleWatchAndCenter: "the title is shown on a watch and in Notification Center only"
    }
  }
}
