import BinaryProtocol
import Testing

@testable import LoadTest

/// Conversations with the parser of a gateway's bytes.
@Suite("A gateway's answers")
struct GatewayAnswersTests {
  private func bytes(_ status: UInt8, _ identifier: UInt8, command: UInt8 = 8) -> [UInt8] {
    [command, status, 0, 0, 0, identifier]
  }
  private func response(_ status: UInt8, _ identifier: UInt32, command: UInt8 = 8) -> GatewayAnswers.Answer {
    .response(ErrorResponse(command: command, status: .init(rawValue: status), identifier: identifier))
  }

  @Test("Responses are the same however their bytes are cut")
  func cuts() {
    let stream = bytes(0, 1) + bytes(8, 2) + bytes(10, 3)
    for cut in 0...stream.count {
      for second in cut...stream.count {
        var answers = GatewayAnswers()
        var found = answers.receive(stream[..<cut])
        found += answers.receive(stream[cut..<second])
        found += answers.receive(stream[second...])
        #expect(found == [response(0, 1), response(8, 2), response(10, 3)], "cut at \(cut) and \(second)")
        #expect(answers.finish() == nil && !answers.isForeign)
      }
    }
  }

  @Test("Bytes that are no response end the parsing: what was good before is kept, the rest is counted")
  func foreign() {
    var answers = GatewayAnswers()
    let page = Array("HTTP/1.1 400 Bad Request".utf8)
    #expect(answers.receive(bytes(8, 1) + page) == [response(8, 1), .foreign(page)])
    #expect(answers.isForeign)
    #expect(answers.receive([1, 2, 3]) == [.stray(3)])
    #expect(answers.receive(bytes(8, 1)) == [.stray(6)])
    #expect(answers.finish() == nil)
  }

  @Test("Six bytes with another command byte are a response when they are the whole answer")
  func otherCommand() {
    var whole = GatewayAnswers()
    #expect(whole.receive(bytes(8, 7, command: 1)) == [])
    #expect(whole.finish() == response(8, 7, command: 1))
    var more = GatewayAnswers()
    #expect(more.receive(bytes(8, 7, command: 1)) == [])
    #expect(more.receive([9]) == [.foreign(bytes(8, 7, command: 1) + [9])])
    var later = GatewayAnswers()
    let foreign = bytes(8, 7, command: 1)
    #expect(later.receive(bytes(0, 1) + foreign) == [response(0, 1), .foreign(foreign)])
  }

  @Test("The part of a response that the end cut off means nothing", arguments: 1...5)
  func part(length: Int) {
    var answers = GatewayAnswers()
    #expect(answers.receive(bytes(8, 1).prefix(length)) == [])
    #expect(answers.finish() == .stray(length) && answers.finish() == nil)
    var after = GatewayAnswers()
    #expect(after.receive(bytes(8, 1) + bytes(8, 2).prefix(length)) == [response(8, 1)])
    #expect(after.finish() == .stray(length))
  }

  @Test("Too few bytes of something else are foreign at the end")
  func shortForeign() {
    var answers = GatewayAnswers()
    _ = answers.receive([0x48, 0x54])
    #expect(answers.isForeign || answers.finish() == .foreign([0x48, 0x54]))
  }
}
