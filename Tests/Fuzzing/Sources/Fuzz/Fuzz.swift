import CFuzzing
import Glibc

/// `apnscope-fuzz TARGET [libFuzzer options] [corpus…]` fuzzes one parser.
/// `apnscope-fuzz seeds DIRECTORY TRACE…` makes a corpus for each target from recordings.
@main
enum Fuzz {
  static let targets: [String: @Sendable (RawSpan) -> Void] = [
    "frame": fuzzFrames, "feedback": fuzzFeedback, "responses": fuzzResponses, "json": fuzzJSON, "payload": fuzzPayload,
    "gateway": fuzzGateway,
    "packet": fuzzPackets, "layers": fuzzLayers, "segments": fuzzSegments, "stream": fuzzStream,
    "pcap": fuzzCapture, "pcapng": fuzzCapture, "dump": fuzzDump,
    "recording": fuzzRecording, "blocks": fuzzBlocks, "tls": fuzzTLS, "keylog": fuzzKeyLog,
    "selection": fuzzSelection, "redaction": fuzzRedaction, "pasted": fuzzPasted, "preamble": fuzzPreamble,
    "hpack": fuzzHPACK, "provider": fuzzProvider, "recognition": fuzzRecognition,
    "server": fuzzServer, "devices": fuzzDevices, "local-push": fuzzLocalPush,
  ]

  /// What the callback, a C function, calls. Set once before libFuzzer starts.
  nonisolated(unsafe) private static var target: @Sendable (RawSpan) -> Void = { _ in }

  static func main() {
    let arguments = CommandLine.arguments
    if arguments.count > 3, arguments[1] == "seeds" {
      writeSeeds(from: Array(arguments[3...]), to: arguments[2])
      return
    }
    // libFuzzer starts this program again to minimise (-minimize_crash=1) or in jobs (-fork=N), and does not know that
    // the first argument was ours: the environment tells.
    let named = arguments.count > 1 && targets[arguments[1]] != nil
    let name = named ? arguments[1] : getenv("APNSCOPE_FUZZ_TARGET").map { String(cString: $0) } ?? ""
    guard let chosen = targets[name] else {
      print(
        """
        usage: apnscope-fuzz TARGET [libFuzzer options] [corpus…]
               apnscope-fuzz seeds DIRECTORY TRACE…
        targets: \(targets.keys.sorted().joined(separator: " "))
        """)
      exit(64)
    }
    target = chosen
    setenv("APNSCOPE_FUZZ_TARGET", name, 1)
    // libFuzzer sees its own options only.
    var argv: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>? = CommandLine.unsafeArgv
    var argc = CommandLine.argc
    if named {
      argv?[1] = argv?[0]
      argv = argv.map { $0 + 1 }
      argc -= 1
    }
    exit(
      LLVMFuzzerRunDriver(&argc, &argv) { data, size in
        Fuzz.target(UnsafeRawBufferPointer(start: data, count: size).bytes)
        return 0
      })
  }
}

/// Ends the process, which libFuzzer takes for a crash, when a law does not hold.
@inline(__always)
func law(_ holds: Bool, _ text: @autoclosure () -> String, line: UInt = #line, file: StaticString = #fileID) {
  if !holds { fatalError("law broken: " + text(), file: file, line: line) }
}

/// Reads the numbers that steer a target from the front of its input.
struct Script: ~Escapable {
  private let bytes: RawSpan
  private(set) var offset = 0

  @_lifetime(copy bytes)
  init(_ bytes: RawSpan) { self.bytes = bytes }

  var isAtEnd: Bool { offset >= bytes.byteCount }

  /// The next byte, 0 behind the end.
  mutating func byte() -> Int {
    guard !isAtEnd else { return 0 }
    defer { offset += 1 }
    return Int(bytes.unsafeLoad(fromByteOffset: offset, as: UInt8.self))
  }

  mutating func word() -> Int {
    let high = byte()
    return high << 8 | byte()
  }

  /// As many of the next bytes as are there.
  @_lifetime(copy self)
  mutating func take(_ count: Int) -> RawSpan {
    let end = min(bytes.byteCount, offset + count)
    let piece = bytes.extracting(offset..<end)
    offset = end
    return piece
  }

  @_lifetime(copy self)
  mutating func rest() -> RawSpan { take(bytes.byteCount) }
}
