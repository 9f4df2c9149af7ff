import BinaryProtocol
import TestSupport
import Testing

/// How a gateway's answers are read; a load reads them by the same rules (LoadTestTests).
@Suite("Answers")
struct AnswerTests {
  private func seen(_ answer: [[UInt8]]) throws -> Collector {
    var capture = CaptureBuilder()
    let line = capture.connect()
    capture.client(line, [2, 0, 0, 0, 0])
    for piece in answer { capture.server(line, piece) }
    capture.finish(line, byServer: true)
    return try capture.dissected()
  }

  @Test("What is no error response is malformed, and decoding goes on at the next one", arguments: AnswerSample.all)
  func samples(sample: AnswerSample) throws {
    let whole = try seen([sample.bytes])
    #expect(whole.responses.count == sample.responsesInAll)
    let malformed = whole.malformed.filter { $0.direction == .server }.reduce(0) { $0 + $1.place.length }
    // The beginning of a response is one that the capture's end has cut.
    if sample.name != "half a response" { #expect(6 * whole.responses.count + malformed == sample.bytes.count) }
    // However it is cut.
    for cut in 1..<sample.bytes.count {
      let pieces = try seen([Array(sample.bytes[..<cut]), Array(sample.bytes[cut...])])
      #expect(pieces.responses.map(\.response) == whole.responses.map(\.response), "cut at \(cut)")
    }
  }

  @Test("A page of HTML from an HTTP server on the port holds no error response (load said: 156 x status 10)")
  func page() throws {
    let page = Array("<!DOCTYPE HTML>\n<html lang=\"en\">\n    <head>\n        <meta charset=\"utf-8\">\n".utf8)
    let seen = try seen([page])
    #expect(seen.responses.isEmpty && seen.summaries.first?.errorResponses == 0)
  }
}
