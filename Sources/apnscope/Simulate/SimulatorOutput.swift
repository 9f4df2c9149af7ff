import CommandFiles

/// The lines of text of a simulator: on standard output or, if that has records, on standard error.
struct SimulatorOutput {
  private let output: TextOutput?

  /// - Parameter isFree: whether standard output is free for it.
  init(isFree: Bool) throws(FileFailure) { output = isFree ? try TextOutput() : nil }

  func say(_ line: String) {
    if let output { output.say(line) } else { StandardError.write(line + "\n") }
  }

  /// Writes text for people.
  func show(_ text: String, _ colour: ColourOption) {
    if let output { output.show(text, colour) } else { StandardError.write(text + "\n") }
  }

  /// Throws when something could not be written.
  func check() throws(FileFailure) { try output?.check() }
}
