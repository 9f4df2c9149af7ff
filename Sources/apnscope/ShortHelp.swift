import ArgumentParser
import Reporting

/// The help of `-h`: every option in a line or two, without limits; `--help` is the manual.
struct ShortHelp {
  let text: String

  /// The option that asks for it.
  static let option = "-h"
  /// The columns of a terminal that is not known.
  private static let usualColumns = 80
  /// The columns of the options' names; a longer name has a line of its own.
  private static let nameColumns = 28

  /// Whether the command line asks for the short help of a command.
  static func isAsked(by arguments: [String]) -> Bool {
    arguments.prefix { $0 != "--" }.contains(option)
  }

  /// - Parameter columns: the terminal's width; `nil`: not known.
  init(of command: any ParsableCommand.Type, named name: String, usage: String, columns: Int?) throws {
    let description = try CommandDescription(of: command)
    let width = max(40, min(columns ?? Self.usualColumns, 120))
    let layout = TextLayout(columns: width, isColoured: false)
    var lines = [layout.laidOut(description.abstract), "", "Usage: \(usage)"]
    var sections: [(title: String, lines: [String])] = []
    for argument in description.arguments where argument.shouldDisplay {
      let title = argument.sectionTitle ?? (argument.kind == "positional" ? "Arguments" : "Options")
      guard !title.hasPrefix("Limits"), argument.longName != "help" else { continue }
      let shown = Self.lines(of: argument, width)
      if let place = sections.firstIndex(where: { $0.title == title }) {
        sections[place].lines += shown
      } else {
        sections.append((title, shown))
      }
    }
    for section in sections { lines += ["", section.title] + section.lines }
    lines += ["", "Details, examples and limits: apnscope \(name) --help"]
    text = lines.joined(separator: "\n")
  }

  private static func lines(of argument: CommandDescription.Argument, _ width: Int) -> [String] {
    var name: String
    if argument.kind == "positional" {
      name = "<\(argument.valueName ?? "")>" + (argument.isRepeating ? " …" : "")
    } else {
      // Short names first.
      let names = argument.names ?? []
      let sorted = names.filter { $0.kind != "long" } + names.filter { $0.kind == "long" }
      name = sorted.map(\.typed).joined(separator: ", ")
      if argument.kind == "option", let value = argument.valueName { name += " <\(value)>" }
    }
    let indent = String(repeating: " ", count: nameColumns + 2)
    var sentence = wrapped(firstSentence(of: argument.abstract ?? ""), to: width - nameColumns - 2)
    guard name.count + 2 <= nameColumns else { return ["  \(name)"] + sentence.map { indent + $0 } }
    let first = sentence.isEmpty ? "" : sentence.removeFirst()
    return ["  \(name)" + String(repeating: " ", count: nameColumns - name.count) + first]
      + sentence.map { indent + $0 }
  }

  /// The first sentence of a description, without examples and full stop.
  static func firstSentence(of description: String) -> Substring {
    var text = description[...]
    for end in ["; ", ", e.g.", ", as ", ". "] {
      if let range = text.firstRange(of: end) { text = text[..<range.lowerBound] }
    }
    while text.last == "." { text.removeLast() }
    return text
  }

  /// At most two lines; what does not fit them is left to the manual.
  private static func wrapped(_ text: Substring, to room: Int) -> [String] {
    let lines = TextLayout(columns: room, isColoured: false).laidOut(String(text)).split(separator: "\n")
      .map { $0.drop { $0 == " " } }
    guard lines.count > mostLines else { return lines.map(String.init) }
    let last = lines[mostLines - 1]
    let cut = last.count < room ? last : last.lastIndex(of: " ").map { last[..<$0] } ?? last.dropLast()
    return lines.prefix(mostLines - 1).map(String.init) + [cut + "…"]
  }

  private static let mostLines = 2
}
