import ArgumentParser
import CommandFiles
import Glibc
import Reporting

/// The terminal that a stream is, if it is one.
enum Terminal {
  /// The terminal's width; `nil` if the stream is no terminal, or the terminal does not know it.
  ///
  /// It is asked for each time, so that a resized terminal counts from the next line on.
  static func columns(of descriptor: Int32) -> Int? { size(of: descriptor)?.columns }

  /// The terminal's width and height; `nil` as above.
  static func size(of descriptor: Int32) -> (columns: Int, rows: Int)? {
    guard isatty(descriptor) == 1 else { return nil }
    var size = winsize()
    // Safe: the size lives through the call.
    guard unsafe ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return nil }
    return (Int(size.ws_col), max(1, Int(size.ws_row)))
  }
}

/// Writes and removes one line of progress on standard error.
enum ProgressLine {
  /// Replaces the line. Its last column stays empty: a terminal may wrap behind it.
  static func show(_ line: StatusLine) {
    StandardError.write("\r\u{1b}[K\(line.fitted(Terminal.columns(of: STDERR_FILENO).map { $0 - 1 }))")
  }

  static func remove() { StandardError.write("\r\u{1b}[K") }
}

/// Whether progress is shown.
struct QuietOption: ParsableArguments {
  @Flag(name: .shortAndLong, help: "No progress on standard error; errors and warnings stay.")
  var quiet = false
}

/// Whether progress is shown, and text has colours.
struct DisplayOptions: ParsableArguments {
  @OptionGroup var progress: QuietOption
  @OptionGroup var colour: ColourOption
}

/// Whether text has colours.
struct ColourOption: ParsableArguments {
  enum When: String, CaseIterable, ExpressibleByArgument {
    case auto, always, never
  }

  @Option(
    name: .customLong("color"),
    help: ArgumentHelp(
      "Colours in text: auto (on a terminal, unless NO_COLOR is set), always or never.", valueName: "when"))
  var colour = When.auto

  /// The layout of text on standard output.
  var layout: TextLayout {
    let columns = Terminal.columns(of: STDOUT_FILENO)
    let isColoured =
      switch colour {
      case .always: true
      case .never: false
      case .auto: isatty(STDOUT_FILENO) == 1 && !Self.isRefused
      }
    return TextLayout(columns: columns, isColoured: isColoured)
  }

  /// Whether the environment asks for text without colours (no-color.org), or the terminal has none.
  private static var isRefused: Bool {
    if let value = unsafe getenv("NO_COLOR"), unsafe value.pointee != 0 { return true }
    guard let terminal = unsafe getenv("TERM") else { return true }
    return unsafe strcmp(terminal, "dumb") == 0
  }
}

extension TextOutput {
  /// Writes text for people.
  func show(_ text: String, _ colour: ColourOption) { say(colour.layout.laidOut(text)) }
}
