import Foundation
import Measurement
import Testing

@Suite("Inspections as values")
struct InspectionValuesTests {
  private let encoder = JSONEncoder()
  private let decoder = JSONDecoder()

  init() {
    encoder.keyEncodingStrategy = .convertToSnakeCase
    encoder.outputFormatting = .sortedKeys
    decoder.keyDecodingStrategy = .convertFromSnakeCase
  }

  @Test("Counts are an object of their names, which coders of snake case leave as they are")
  func namedCounts() throws {
    var counts: NamedCounts<CapturedEnd> = [.serverRST: 2, .clientFIN: 1]
    counts.byName["Other ends"] = 7
    let text = String(decoding: try encoder.encode(counts), as: UTF8.self)
    #expect(text == #"{"Other ends":7,"client_fin":1,"server_rst":2}"#)
    #expect(try decoder.decode(NamedCounts<CapturedEnd>.self, from: Data(text.utf8)) == counts)
    #expect(throws: DecodingError.self) {
      try decoder.decode(NamedCounts<CapturedEnd>.self, from: Data(#"{"client_fin":"1"}"#.utf8))
    }
  }

  @Test("Counts are read, added and listed by what they are of")
  func counting() {
    var counts: NamedCounts<CapturedGap> = [.lost: 3]
    counts[.beforeCapture, default: 0] += 3
    counts.merge([.lost: 1, .truncated: 0], +)
    #expect(counts[.lost] == 4 && counts[.truncated] == 0 && counts[.captureEnd] == nil)
    #expect(counts.positive.sorted.map(\.name) == ["before_capture", "lost"])
    #expect(counts.byCount.map(\.name) == ["lost", "before_capture", "truncated"])
    counts[.lost] = nil
    #expect(counts == [.beforeCapture: 3, .truncated: 0])
  }

  @Test("The document says which it is; one of 0.1.0, which does not, is read as well, and no other")
  func document() throws {
    var report = InspectionReport()
    report.missingBytes = 7
    let document = InspectionDocument(report)
    let data = try encoder.encode(document)
    let object = try #require(try JSONSerialization.jsonObject(with: data) as? [String: Any])
    #expect(object["schema"] as? Int == 1 && object["kind"] as? String == "inspect")
    #expect(object["missing_bytes"] as? Int == 7)
    #expect(try decoder.decode(InspectionDocument.self, from: data) == document)
    #expect(try decoder.decode(InspectionDocument.self, from: encoder.encode(report)) == document)
    let lifetime = Distribution(count: 1, min: 3, mean: 3, p50: 3, p95: 3, max: 3)
    var old = try #require(try JSONSerialization.jsonObject(with: encoder.encode(report)) as? [String: Any])
    old["lifetimes"] = try JSONSerialization.jsonObject(with: encoder.encode(lifetime))
    let read = try decoder.decode(InspectionDocument.self, from: JSONSerialization.data(withJSONObject: old))
    #expect(read.report.lifetimesS == lifetime && read.report.missingBytes == 7)
    for (name, value) in [("schema", 2), ("schema", "1"), ("kind", "load")] as [(String, Any)] {
      var other = object
      other[name] = value
      let data = try JSONSerialization.data(withJSONObject: other)
      #expect(throws: DecodingError.self) { try decoder.decode(InspectionDocument.self, from: data) }
    }
  }

  @Test("A report is the same when it is read again, but for what JSON does not have")
  func readAgain() throws {
    var report = TraceReport()
    report.inspection.ends = [.clientFIN: 3]
    report.inspection.errorsByStatus = [8: 2, 10: 1]
    report.inspection.findings = [.init(.payloadOver2048, count: 2, text: "…")]
    report.inspection.lifetimesS = Distribution(count: 1, min: 1, mean: 1, p50: 1, p95: 1, max: 1)
    var row = InspectionReport.ConnectionRow()
    (row.end, row.protocol, row.tls) = (.serverRST, "HTTP", InspectionReport.TLSRow())
    report.inspection.connections = [row]
    report.connections = [TraceReport.Connection()]
    report.inspection.errors = [InspectionReport.ErrorRow()]
    report.errorTimesS = [nil]
    report.priorities = [10: 4]
    report.perSegment = [.init(1, 2)]
    let text = String(decoding: try encoder.encode(report), as: UTF8.self)
    #expect(text.contains(#""errors_by_status":{"10":1,"8":2}"#) && text.contains(#""kind":"payload_over_2048""#))
    #expect(try decoder.decode(TraceReport.self, from: Data(text.utf8)) == report)
    #expect(report.listedConnections.map(\.row) == [row] && report.listedErrors.map(\.timeS) == [nil])
  }
}
