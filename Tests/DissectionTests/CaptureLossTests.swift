import Bytes
import Foundation
import Measurement
import PacketCapture
import TestSupport
import Testing

@testable import Analysis
@testable import Dissection
@testable import Records

/// What the program that captured dropped, as pcapng's interface statistics and snoop tell.
@Suite("What a capture lost")
struct CaptureLossTests {
  /// An interface statistics block: `type 5 | length | interface | time | options | length`.
  private func statistics(_ counts: [(code: UInt16, value: UInt64)], interface: UInt32 = 0) -> [UInt8] {
    written { output in
      let length = UInt32(24 + counts.count * 12 + 4)
      func write(_ value: UInt32) {
        for shift in 0..<4 { output.write(UInt8(truncatingIfNeeded: value >> (8 * shift))) }
      }
      func write(_ value: UInt16) {
        for shift in 0..<2 { output.write(UInt8(truncatingIfNeeded: value >> (8 * shift))) }
      }
      write(UInt32(5))
      write(length)
      write(interface)
      write(UInt32(0))
      write(UInt32(0))
      for (code, value) in counts {
        write(code)
        write(UInt16(8))
        // Times are two words, the upper one first.
        let words = code == 2 ? [value >> 32, value] : [value, value >> 32]
        for word in words { write(UInt32(truncatingIfNeeded: word)) }
      }
      write(UInt32(0))
      write(length)
    }
  }

  private let trace = (try? Data(contentsOf: Folder.traces.appending(path: "plain-error.pcapng"))).map { [UInt8]($0) }

  private func seen(_ blocks: [UInt8]...) throws -> (Collector, InspectionReport) {
    let files = try #require(trace)
    let folder = FileManager.default.temporaryDirectory.appending(path: "apnscope-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    func read<Sink: RecordSink>(_ sink: Sink) throws -> Sink {
      var recording = Recording()
      for (index, block) in blocks.enumerated() {
        let path = folder.appending(path: "\(index).pcapng")
        try Data(files + block).write(to: path)
        guard let file = try CaptureInput.openCapture(path.path, options: CaptureOptions()) else { continue }
        recording.add(file, options: CaptureOptions())
      }
      recording.sort()
      let shared = SharedSink(sink)
      var dissection = Dissection(into: shared, options: DissectionOptions())
      _ = try dissection.read(recording, sources: []) { _ in true }
      dissection.finish()
      return shared.sink
    }
    var inspection = try read(Inspection())
    return (try read(Collector()), inspection.finish())
  }

  @Test("Drops of a file are a record and the first finding, count as damage, and stand in the summary")
  func drops() throws {
    let (records, report) = try seen(statistics([(4, 20_000), (5, 1_000), (7, 500)]))
    #expect(records.losses.map(\.loss.dropped) == [1_500])
    #expect(records.losses.first?.loss.interfaceDropped == 1_000 && records.losses.first?.loss.systemDropped == 500)
    #expect(records.losses.first?.loss.received == 20_000)
    #expect(records.summaries[0].droppedPackets == 1_500 && records.summaries[0].isDamaged)
    #expect(report.findings.first?.kind == .captureLoss && report.findings.first?.count == 1_500)
    #expect(report.summary.droppedPackets == 1_500)
  }

  @Test("A capture that says it dropped nothing, or says nothing, has no such record")
  func none() throws {
    for blocks in [[], statistics([(4, 20_000), (5, 0), (7, 0)]), statistics([])] {
      let (records, report) = try seen(blocks)
      #expect(records.losses.isEmpty && records.summaries[0].droppedPackets == 0)
      #expect(report.summary.droppedPackets == nil && !report.findings.contains { $0.kind == .captureLoss })
    }
  }

  @Test("The latest statistics of an interface count; those of an interface that is not there do not")
  func latest() throws {
    let (records, _) = try seen(
      statistics([(5, 3)]) + statistics([(5, 8)]) + statistics([(5, 100)], interface: 9))
    #expect(records.losses.map(\.loss.dropped) == [8])
  }

  @Test("Counts go on from file to file of a ring, and add up over captures that began at different times")
  func ring() throws {
    let begun: (UInt16, UInt64) = (2, 1_700_000_000_000_000)
    let (ring, _) = try seen(statistics([begun, (5, 3)]), statistics([begun, (5, 8)]))
    #expect(ring.losses.map(\.loss.dropped) == [3, 8] && ring.summaries[0].droppedPackets == 8)
    let (other, _) = try seen(statistics([begun, (5, 3)]), statistics([(2, begun.1 + 1), (5, 8)]))
    #expect(other.summaries[0].droppedPackets == 11)
    let (untimed, _) = try seen(statistics([(5, 3)]), statistics([(5, 8)]))
    #expect(untimed.summaries[0].droppedPackets == 11)
  }

  @Test("Numbers that no capture can have do not overflow")
  func overflow() throws {
    let (records, _) = try seen(statistics([(5, .max), (7, .max)]), statistics([(5, .max), (7, .max)]))
    #expect(records.summaries[0].droppedPackets > 1 << 36)
  }

  @Test("The record is written, read back, and counted again")
  func readBack() throws {
    let record = CaptureLossRecord(
      file: 2, loss: CaptureLoss(interface: "eth0", interfaceDropped: 2, systemDropped: 3, received: 10))
    var text: [UInt8] = []
    let writer = JSONLinesWriter {
      text.append(copying: $0)
      return true
    }
    writer.receive(record)
    writer.flush()
    #expect(
      String(decoding: text, as: UTF8.self)
        == #"{"type":"capture_loss","file":2,"interface":"eth0","dropped":5,"interface_dropped":2,"os_dropped":3,"#
        + #""received":10}"# + "\n")
    var reader = RecordReader()
    var collector = Collector()
    try reader.read(text.rawBytes, into: &collector)
    #expect(collector.losses.map(\.loss) == [record.loss] && collector.losses.map(\.file) == [2])
  }
}
