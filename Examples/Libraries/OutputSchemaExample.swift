import Foundation
import OutputSchema
import Testing

extension LibraryExamples {
  @Test("OutputSchema: an output is held against its description")
  func schema() throws {
    let file = Self.root.appending(path: "Traces/plain-error.pcap.jsonl")

    let records = [UInt8](try Data(contentsOf: file))
    let none = Schema.records.check(records)  // no problem
    let line = #"{"type":"gap","connection":"1"}"#
    let problems = Schema.records.check(line).map(\.description)  // fields that are missing or of a wrong type
    let jsonSchema = Schema.records.jsonSchema.text
    let page = Schema.markdown(of: [.records])

    #expect(none.isEmpty)
    #expect(!problems.isEmpty)
    #expect((try? JSONSerialization.jsonObject(with: Data(jsonSchema.utf8))) != nil)
    #expect(page.contains("latency_ms"))
  }
}
