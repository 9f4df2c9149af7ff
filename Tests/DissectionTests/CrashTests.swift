import BinaryProtocol
import Bytes
import FoundationEssentials
import PacketCapture
import Testing

@testable import Records

/// Inputs that a fuzzer found and that once ended the program or broke a law: they are read for ever.
struct CrashTests {
  static let folder = Folder.tests.deletingLastPathComponent().appending(path: "Fuzzing/Crashes")

  /// Files of the targets that read whole files, as `TARGET/NAME`.
  static let files = ["pcap", "pcapng", "dump"].flatMap { target in
    Folder.names(in: folder.appending(path: target), ending: "").map { "\(target)/\($0)" }
  }

  @Test("Files that broke something are read to their end", arguments: files)
  func filesThatBrokeSomethingAreReadToTheirEnd(file: String) throws {
    do {
      let collector = try dissect(Self.folder.appending(path: file).path)
      #expect(collector.summaries.count == 1)
    } catch let error as CaptureError {
      #expect(error.kind == .notACapture)
    }
  }

  /// Bytes lost inside an error response, and fewer behind them than it needs.
  @Test("A gap inside a response is survived") func aGapInsideAResponseIsSurvived() {
    var framer = RecordFramer<ResponseGrammar, CapturePosition>(grammar: ResponseGrammar(), isAligned: true)
    var damaged = 0
    let (head, tail): ([UInt8], [UInt8]) = ([8, 8, 0], [9])
    let mark = CapturePosition(time: .none, packet: 1)
    framer.read(head.rawBytes, at: 0, mark: mark) { _, _, _ in
      Issue.record("no record is whole")
    } damage: {
      damaged += $0.length
    }
    framer.gap(at: 3, length: 1)
    framer.readFound { _, _, _ in
      Issue.record("no record is whole")
    } damage: {
      damaged += $0.length
    }
    framer.read(tail.rawBytes, at: 4, mark: mark) { _, _, _ in
      Issue.record("no record is whole")
    } damage: {
      damaged += $0.length
    }
    framer.finish()
    framer.readFound { _, _, _ in
      Issue.record("no record is whole")
    } damage: {
      damaged += $0.length
    }
    #expect(damaged == head.count + tail.count)
  }
}
