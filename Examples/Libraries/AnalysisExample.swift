import Analysis
import Dissection
import PacketCapture
import Records
import Testing

extension LibraryExamples {
  @Test("Analysis: a capture becomes a report")
  func analysis() throws {
    let path = Self.trace("plain-error.pcap")

    let counted = SharedSink(Inspection())
    var dissection = Dissection(into: counted, options: DissectionOptions())
    _ = try dissection.read(CaptureInput.open(path, options: CaptureOptions()), source: "a.pcap") { _ in true }
    dissection.finish()
    let report = counted.sink.finish()

    #expect(report.summary.notifications == report.connections.reduce(0) { $0 + $1.notifications })
    #expect(report.errorCount == 1 && report.fates.rejected == 1)
  }
}
