import Bytes
import Dissection
import PacketCapture
import Records
import TLSDecryption
import Testing

extension LibraryExamples {
  @Test("Dissection: a capture becomes JSON Lines")
  func dissection() throws {
    let (path, keyLog) = (Self.trace("tls-gateway.pcap"), Self.trace("tls-gateway.pcap.keys"))

    let secrets = Secrets()
    secrets.add(try KeyLog(contentsOf: keyLog, maximumLength: 1 << 20, maximumLines: 100_000))
    var lines: [UInt8] = []
    let sink = JSONLinesWriter { bytes in
      lines.append(copying: bytes)
      return true  // more is wanted
    }
    var dissection = Dissection(into: sink, options: DissectionOptions(), secrets: secrets)
    let input = try CaptureInput.open(path, options: CaptureOptions())
    let outcome = try dissection.read(input, source: "a.pcap") { progress in true }
    dissection.finish()
    sink.flush()

    #expect(outcome.warnings.isEmpty)
    #expect(dissection.summary.notifications == 12)
    let text = String(decoding: lines, as: UTF8.self).split(separator: "\n")
    #expect(text.first?.hasPrefix(#"{"type":"capture","schema":1,"source":"a.pcap","#) == true)
    #expect(text.count { $0.hasPrefix(#"{"type":"notification""#) } == 12)
  }
}
