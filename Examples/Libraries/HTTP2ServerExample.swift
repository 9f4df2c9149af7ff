import Bytes
import HTTP2
import HTTP2Server
import Testing

extension LibraryExamples {
  @Test("HTTP2Server: a request is answered")
  func http2Server() {
    let received = Self.receivedRequest()

    var session = ServerSession()
    var (offset, contents) = (0, [String]())
    while let event = session.next(received.rawBytes, &offset, second: 0) {
      guard case .ended(let stream, let content, _) = event else { continue }
      switch content {
      case .bytes(let range): contents.append(String(decoding: received[range], as: UTF8.self))
      case .kept: contents.append(String(decoding: session.takeContent(stream.slot), as: UTF8.self))
      }
      session.answer(stream.slot, status: 200) { $0.writeField("x-answer", Array("yes".utf8).rawBytes) }
    }
    let sent = Array(copying: session.output.bytes)  // SETTINGS, their acknowledgement, HEADERS

    #expect(contents == ["hello"])
    #expect(offset == received.count)
    var (types, start) = ([FrameType](), 0)
    while let header = FrameHeader(parsing: sent.rawBytes.extracting(start..<sent.count)) {
      types.append(header.type)
      start += header.frameLength
    }
    #expect(types == [.settings, .settings, .headers])
  }

  /// The first bytes of a client with one request.
  private static func receivedRequest() -> [UInt8] {
    var encoder = HPACKEncoder()
    var block = ByteWriter()
    var client = ByteWriter()
    for (name, value) in [(":method", "POST"), (":scheme", "https"), (":path", "/"), (":authority", "localhost")] {
      encoder.write(Array(name.utf8).rawBytes, Array(value.utf8).rawBytes, to: &block)
    }
    client.write(Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8).rawBytes)
    client.writeSettings([])
    client.writeFrame(.headers, flags: .endHeaders, stream: 1, block.bytes)
    client.writeFrame(.data, flags: .endStream, stream: 1, Array("hello".utf8).rawBytes)
    return Array(copying: client.bytes)
  }
}
