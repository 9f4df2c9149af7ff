import Bytes
import Foundation
import Records
import Testing

extension LibraryExamples {
  @Test("Records: JSON Lines become two columns of CSV")
  func records() throws {
    let text = try String(contentsOfFile: Self.trace("plain-error.pcap.jsonl"), encoding: .utf8)

    var table: [UInt8] = []
    var sink = SomeColumnsWriter(try #require(FieldSelection(["index", "fate"]))) { bytes in
      table.append(copying: bytes)
      return true  // more is wanted
    }
    var reader = RecordReader()
    let lines = text.split(separator: "\n").map { Array($0.utf8) }
    for line in lines { reader.scan(line.rawBytes) }
    for line in lines { try reader.read(line.rawBytes, into: &sink) }
    reader.finish(into: &sink)
    sink.flush()

    let rows = String(decoding: table, as: UTF8.self).split(separator: "\n")
    #expect(rows.first == "index,fate")
    #expect(rows.count == 1 + lines.count { $0.starts(with: Array(#"{"type":"notification""#.utf8)) })
  }
}
