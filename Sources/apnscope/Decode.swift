import ArgumentParser
import Dissection
import PacketCapture

struct Decode: ParsableCommand {
  enum Format: String, CaseIterable, ExpressibleByArgument {
    case jsonl
  }

  static let configuration = CommandConfiguration(
    abstract: "Turn recordings into structured records.",
    discussion: "")

  @OptionGroup var reading: ReadingOptions
  @Option var format = Format.jsonl
  @Option var output: String?
  @Flag var strict = false

  func run() throws {
    Interrupt.watch()
    let file = OutputFile()
    let writer = JSONLinesWriter { file.write($0) }
    var dissection = Dissection(into: writer, options: reading.dissectionOptions, filter: nil)
    for i in reading.inputs {
      do {
        let w = try dissection.read(CaptureInput.open(i, options: reading.dissectionOptions.capture), source: i) { _ in writer.isOpen }
        for x in w { complain("\(i): \(x)") }
      } catch let e as CaptureError { complain("\(i): \(e)"); throw ExitStatus.code(for: e) }
    }
    dissection.finish()
    writer.flush()
  }
}
