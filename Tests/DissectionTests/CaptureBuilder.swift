import BinaryProtocol
import Bytes
import Measurement
import TestSupport

@testable import Analysis
@testable import Dissection
@testable import Records

extension CaptureBuilder {
  /// Connections on which a gateway answers many notifications, in any order.
  static func conversations(_ random: inout SeededGenerator) -> CaptureBuilder {
    var capture = CaptureBuilder()
    for number in 0..<random.number(1...4) {
      let line = capture.connect(from: UInt16(40_001 + number))
      var written: UInt32 = 0
      for _ in 0..<random.number(1...60) {
        if written > 0, random.happens(oneIn: random.pick([2, 9])) {
          let status = random.pick([0, 0, 1, 8, 8, 10, 255] as [UInt8])
          capture.server(line, refusal(status, UInt32(random.number(1...Int(written + 1)))))
        } else {
          written += 1
          capture.client(line, push(random.happens(oneIn: 9) ? 1 : written, device: UInt8(random.number(0...3))))
        }
      }
      if random.happens(oneIn: 2) { capture.finish(line, byServer: random.happens(oneIn: 2)) }
    }
    return capture
  }

  /// What a dissection makes of the file.
  func dissected(_ options: DissectionOptions = DissectionOptions()) throws -> Collector {
    try withTemporaryFile(bytes) { try dissect($0, options) }
  }

  func inspected(limits: Inspection.Limits = Inspection.Limits()) throws -> InspectionReport {
    try withTemporaryFile(bytes) { path in
      let shared = SharedSink(Inspection(limits: limits))
      var dissection = Dissection(into: shared, options: DissectionOptions())
      _ = try dissection.read(try .open(path, options: DissectionOptions().capture), source: path) { _ in true }
      dissection.finish()
      return shared.sink.finish()
    }
  }
}

/// A command-1 notification; `device` fills its token.
func push(_ identifier: UInt32, device: UInt8, _ text: String = "hi") -> [UInt8] {
  written {
    BinaryFrame.encodeEnhanced(
      identifier: identifier, expiration: 1_900_000_000, token: [UInt8](repeating: device, count: 32).rawBytes,
      payload: Array(#"{"aps":{"alert":"\#(text)"}}"#.utf8).rawBytes, into: &$0)
  }
}

/// The same, which wakes the app and shows nothing: what kind of push that is depends on the topic.
func silentPush(_ identifier: UInt32, device: UInt8) -> [UInt8] {
  written {
    BinaryFrame.encodeEnhanced(
      identifier: identifier, expiration: 1_900_000_000, token: [UInt8](repeating: device, count: 32).rawBytes,
      payload: Array(#"{"aps":{"content-available":1}}"#.utf8).rawBytes, into: &$0)
  }
}

/// A command-2 notification without items 3 to 5.
func plainFrame(device: UInt8) -> [UInt8] {
  written {
    BinaryFrame.encodeFramed(
      token: [UInt8](repeating: device, count: 32).rawBytes, payload: Array(#"{"aps":{}}"#.utf8).rawBytes,
      identifier: nil, expiration: nil, priority: nil, into: &$0)
  }
}

func refusal(_ status: UInt8, _ identifier: UInt32, command: UInt8 = 8) -> [UInt8] {
  written {
    ErrorResponse(command: command, status: .init(rawValue: status), identifier: identifier).encode(into: &$0)
  }
}
