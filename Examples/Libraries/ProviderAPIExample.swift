import Bytes
import HTTP2
import ProviderAPI
import Testing

extension LibraryExamples {
  @Test("ProviderAPI: a notification without an answer has an unknown fate")
  func providerAPI() {
    let recorded = Self.recordedRequest()

    struct Tokens: ProviderHandler {
      var tokens: [String] = []
      mutating func receive(_ event: ProviderEvent, _ bytes: RawSpan) {
        guard case .request(let request) = event else { return }
        tokens.append(String(decoding: Array(copying: bytes.extracting(request.tokenText.range)), as: UTF8.self))
      }
    }
    var (session, handler) = (ProviderSession(), Tokens())
    let start = Arrival(time: 0, packet: 1)
    session.read(recorded.rawBytes, from: .client, at: 0, arrival: start, into: &handler)
    session.finish(.client, .closed, arrival: start, into: &handler)
    session.finish(.server, .closed, arrival: start, into: &handler)
    let (tokens, fates) = (handler.tokens, session.fates)  // ["00fc"], 1 unknown

    #expect(tokens == ["00fc"])
    #expect(fates.unknown == 1)
  }

  /// The client's bytes of a connection with one notification.
  private static func recordedRequest() -> [UInt8] {
    var encoder = HPACKEncoder()
    var block = ByteWriter()
    var client = ByteWriter()
    for (name, value) in [(":method", "POST"), (":scheme", "https"), (":path", "/3/device/00fc")] {
      encoder.write(Array(name.utf8).rawBytes, Array(value.utf8).rawBytes, to: &block)
    }
    client.write(Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8).rawBytes)
    client.writeSettings([])
    client.writeFrame(.headers, flags: .endHeaders, stream: 1, block.bytes)
    client.writeFrame(.data, flags: .endStream, stream: 1, Array(#"{"aps":{}}"#.utf8).rawBytes)
    return Array(copying: client.bytes)
  }
}
