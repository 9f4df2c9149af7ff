import Analysis
import Dissection
import Foundation
import PacketCapture
import Records

/// Peeks at captures: who connected, what became of the notifications, and what is worth a look.
///
///     swift run PeekExample Traces/plain-error.pcap
@main
struct Peek {
  static func main() {
    for path in CommandLine.arguments.dropFirst() {
      do {
        try peek(at: path)
      } catch {
        FileHandle.standardError.write(Data("\(path): \(error)\n".utf8))
        exit(EXIT_FAILURE)
      }
    }
  }

  static func peek(at path: String) throws {
    // `Inspection` is one of the sinks that records can go to; the others write JSON Lines, CSV or a table.
    let shared = SharedSink(Inspection())
    var dissection = Dissection(into: shared, options: DissectionOptions())
    let input = try CaptureInput.open(path, options: CaptureOptions())
    _ = try dissection.read(input, source: path) { _ in true }
    dissection.finish()
    let report = shared.sink.finish()

    print("\(report.summary.packets) packets, \(report.summary.notifications) notifications")
    for row in report.connections {
      print("\(row.client ?? "?") -> \(row.server ?? "?"), \(row.end.rawValue): \(row.notifications) notifications")
      print("  \(row.accepted) accepted, \(row.rejected) rejected, \(row.discarded) discarded, \(row.unknown) unknown")
    }
    for error in report.errors {
      print("error response \(error.status), \(error.statusName), for identifier \(error.identifier)")
    }
    for finding in report.findings {
      print("\(finding.kind.rawValue): \(finding.count), the first in packet \(finding.firstPacket ?? 0)")
    }
  }
}
