import Bytes
import CFuzzing
import Dissection
import Glibc
import PacketCapture
import Records

/// A whole file; its length chooses limits, and whether records are written too.
@Sendable func fuzzCapture(_ bytes: RawSpan) {
  dissect(bytes, dissectionOptions(narrow: bytes.byteCount & 1 != 0), writes: bytes.byteCount & 6 == 6)
}

/// The first byte chooses limits and contents, the rest is a raw or hex dump.
@Sendable func fuzzDump(_ bytes: RawSpan) {
  var script = Script(bytes)
  let choice = script.byte()
  var options = dissectionOptions(narrow: choice & 8 != 0)
  options.dumpContents = [nil, .gateway, .responses, .feedback][choice & 3]
  dissect(script.rest(), options, writes: choice & 0x80 != 0)
}

private func dissect(_ bytes: RawSpan, _ options: DissectionOptions, writes: Bool) {
  withFile(bytes) { path in
    do {
      let input = try CaptureInput.open(path, options: options.capture)
      let shared = SharedSink(LawSink(writes: writes))
      var dissection = Dissection(into: shared, options: options)
      let outcome = try dissection.read(input, source: path) { _ in true }
      law(outcome.warnings.count < 200, "\(outcome.warnings.count) warnings")
      dissection.finish()
      shared.sink.finish(dissection.summary)
    } catch let error as CaptureError {
      law(error.kind != .readFailed, error.message)
    } catch {
      law(false, "an error of another type: \(error)")
    }
  }
}

/// Puts bytes into a file that is nowhere but in memory.
func withFile(_ bytes: RawSpan, _ body: (String) -> Void) {
  let descriptor = memfd_create("input", 0)
  defer { close(descriptor) }
  let written = bytes.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
  guard descriptor >= 0, written == bytes.byteCount else { fatalError("no file in memory: errno \(errno)") }
  body("/proc/self/fd/\(descriptor)")
}
