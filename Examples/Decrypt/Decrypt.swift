import BinaryProtocol
import Bytes
import Dissection
import Foundation
import PacketCapture
import PushModel
import Records
import TLSDecryption

/// Decrypts a capture with a key log, and prints what was pushed.
///
///     swift run DecryptExample Traces/tls-gateway.pcap.keys Traces/tls-gateway.pcap
@main
struct Decrypt {
  static func main() {
    let arguments = CommandLine.arguments
    guard arguments.count == 3 else { fail("usage: DecryptExample KEYLOG CAPTURE") }
    do {
      try decrypt(arguments[2], keyLog: arguments[1])
    } catch {
      fail("\(error)")
    }
  }

  static func decrypt(_ path: String, keyLog: String) throws {
    let secrets = Secrets()
    secrets.add(try KeyLog(contentsOf: keyLog, maximumLength: 1 << 20, maximumLines: 100_000))
    let shared = SharedSink(Pushes())
    var dissection = Dissection(into: shared, options: DissectionOptions(), secrets: secrets)
    let input = try CaptureInput.open(path, options: CaptureOptions())
    _ = try dissection.read(input, source: path) { _ in true }
  }

  static func fail(_ message: String) -> Never {
    FileHandle.standardError.write(Data("\(message)\n".utf8))
    exit(EXIT_FAILURE)
  }
}

/// A sink of one's own: prints notifications and connections, and takes no notice of other records.
struct Pushes: RecordSink {
  var isOpen: Bool { true }

  func receive(_ fields: PushFields, _ frame: RawSpan, at place: RecordPlace, index: Int) {
    let notification = Push(fields, frame)
    let payload = String(decoding: Array(copying: notification.payload), as: UTF8.self)
    // Whoever made the capture chose the text, and must not steer the terminal.
    print("connection \(place.connection), notification \(index): \(ControlCharacters.escaped(payload))")
  }
  func receive(_ record: ConnectionRecord) {
    let tls = record.tls
    print("connection \(record.connection): \(tls?.suite?.name ?? "no TLS"), \(tls?.problem ?? "nothing unread")")
  }
  func receive(malformed: String, _: PushFields, _: RawSpan, at place: RecordPlace, index: Int) {}
  func receive(_ record: CaptureRecord) {}
  func receive(_ record: ErrorResponseRecord) {}
  func receive(_ record: borrowing FeedbackRecord) {}
  func receive(_ record: GapRecord) {}
  func receive(_ record: MalformedRecord) {}
  func receive(_ record: SummaryRecord) {}
}
