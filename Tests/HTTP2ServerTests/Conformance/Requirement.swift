import Bytes
import HTTP2
import HTTP2Server
import Testing

/// A requirement of RFC 9113 on a server, and a conversation that shows that this one meets it.
struct Requirement: Sendable, CustomTestStringConvertible {
  /// What the conversation ends with. Whatever it is, `ServerLaws` hold.
  enum Outcome: Sendable {
    /// GOAWAY with this code, and nothing else is read.
    case connectionError(ErrorCode)
    /// RST_STREAM with this code, and other requests are answered.
    case streamError(ErrorCode, on: UInt32 = 1)
    /// Another request is answered, and no stream was reset.
    case goesOn
    /// The conversation says by itself.
    case shown
  }

  var section: String
  var words: String
  var outcome: Outcome
  var options: ServerOptions
  var settings: [Setting]
  var greets: Bool
  var talk: @Sendable (Pair) -> Void
  var testDescription: String { "\(section): \(words)" }

  init(
    _ section: String, _ words: String, _ outcome: Outcome, settings: [Setting] = [], greets: Bool = true,
    options: ServerOptions = ServerOptions(), _ talk: @escaping @Sendable (Pair) -> Void
  ) {
    (self.section, self.words, self.outcome, self.settings) = (section, words, outcome, settings)
    (self.greets, self.talk, self.options) = (greets, talk, options)
  }

  func check() {
    let pair = Pair(options, settings: settings, greets: greets)
    talk(pair)
    switch outcome {
    case .connectionError(let code):
      #expect(pair.hasFailed)
      #expect(pair.failure == code)
      #expect(pair.events.last.map { if case .failed = $0 { true } else { false } } == true, "it is told")
      let length = pair.written.count
      pair.request(99)
      #expect(pair.written.count == length, "nothing is read behind the error")
    case .streamError(let code, let stream):
      #expect(pair.seen.resets[stream] == code)
      if ![.noError, .refusedStream].contains(code) { #expect(pair.isMistakeTold, "it is told") }
      #expect(pair.seen.goAways.isEmpty)
      goOn(pair)
    case .goesOn:
      #expect(pair.seen.resets.isEmpty)
      #expect(pair.seen.goAways.isEmpty)
      goOn(pair)
    case .shown: break
    }
    pair.finish()
    #expect(pair.seen.serverViolations.isEmpty)
    ServerLaws.check(pair.written)
  }

  private func goOn(_ pair: Pair) {
    pair.answers = true
    pair.request(99)
    #expect(pair.seen.statuses[99]?.count == 1, "another request is answered")
  }
}

extension ServerOptions {
  /// The same options with another value of one.
  func with<Value>(_ option: WritableKeyPath<Self, Value>, _ value: Value) -> Self {
    var options = self
    options[keyPath: option] = value
    return options
  }
}
