import HTTP2Server

/// A limit on a client of the HTTP/2 provider API by its name.
package struct ServiceLimit: Sendable {
  package var name: String
  /// The default as it is typed.
  package var value: String
  /// The subject of the limit, as the end of a sentence.
  package var summary: String
  private var set: @Sendable (inout HTTP2Service, String) -> Bool

  /// A number of frames: `1000+100/s`, or `1000`, to which no second adds.
  private static func frames(
    _ name: String, _ summary: String, _ path: WritableKeyPath<FloodLimits, Allowance> & Sendable
  ) -> ServiceLimit {
    let normal = FloodLimits()[keyPath: path]
    return ServiceLimit(name: name, value: "\(normal.burst)+\(normal.perSecond)/s", summary: summary) { service, text in
      let parts = text.split(separator: "+", maxSplits: 1, omittingEmptySubsequences: false)
      guard let burst = Int(parts[0]), 0...1_000_000_000 ~= burst else { return false }
      var allowance = Allowance(burst: burst, perSecond: 0)
      if parts.count == 2 {
        guard parts[1].hasSuffix("/s"), let rate = Int(parts[1].dropLast(2)), 0...1_000_000 ~= rate else {
          return false
        }
        allowance.perSecond = rate
      }
      service.session.floods[keyPath: path] = allowance
      return true
    }
  }

  private static func number(
    _ name: String, _ range: ClosedRange<Int>, _ summary: String, _ path: WritableKeyPath<HTTP2Service, Int> & Sendable
  ) -> ServiceLimit {
    let normal = HTTP2Service(address: .init(host: "", port: 0))[keyPath: path]
    return ServiceLimit(name: name, value: "\(normal)", summary: summary) { service, text in
      guard let value = Int(text), range.contains(value) else { return false }
      service[keyPath: path] = value
      return true
    }
  }

  /// All of them.
  package static let all: [ServiceLimit] = [
    frames("resets", "RST_STREAM of open streams", \.resets), frames("settings", "SETTINGS", \.settings),
    frames("pings", "PING", \.pings), frames("empty-frames", "DATA without content", \.emptyFrames),
    frames("window-updates", "WINDOW_UPDATE beyond two a DATA frame", \.windowUpdates),
    frames("ignored-frames", "PRIORITY, and frames of undefined types", \.ignoredFrames),
    number("continuations", 0...100_000, "CONTINUATION of one field block", \.session.floods.continuations),
    number(
      "open-streams", 1...1_000_000, "streams open at once before the client knows --streams",
      \.session.maximumOpenStreams),
    number("stream-window", 1...0x7fff_ffff, "SETTINGS_INITIAL_WINDOW_SIZE in bytes", \.session.streamWindow),
    number("header-block", 1...1 << 24, "bytes of a field block as it is sent", \.session.maximumBlock),
    number("header-list", 1...1 << 24, "bytes of a field section", \.session.maximumFieldList),
    number("content", 1...1 << 30, "bytes of content, answered before their end", \.session.maximumContent),
    number("kept-content", 5_120...1 << 24, "bytes of content that are kept", \.session.keptContent),
    number("topics", 1...1_000_000, "topics of a connection; further: ServiceUnavailable", \.maximumTopics),
    number("provider-tokens", 1...1_000_000, "provider tokens remembered of a connection", \.maximumTokens),
    number(
      "channels-of-app", 0...1_000_000, "channels of an app; further: CannotCreateChannelConfig", \.maximumChannelsOfApp
    ),
    number("channels", 0...1_000_000, "channels of all apps", \.maximumChannels),
    number("listed-tokens", 0...1_000_000, "provider tokens listed in the ledger", \.maximumListedTokens),
  ]

  /// Applies `name=value`; `false` for an unknown name, or a value that it does not take.
  package static func apply(_ name: String, _ value: String, to service: inout HTTP2Service) -> Bool {
    all.first { $0.name == name }?.set(&service, value) ?? false
  }
}
