import Bytes
import HTTP2
import HTTP2Server
import Testing

/// Clients that attack: how much memory they make a session take, and how many bytes they make it write.
@Suite("Hostile clients of an HTTP/2 server")
struct HostilePeerTests {
  /// A client that writes without looking, and a session whose output is taken after each read.
  private final class Attack {
    private var session: ServerSession
    var hasFailed: Bool { session.hasFailed }
    var openStreams: Int { session.openStreams }
    var heldBytes: Int { session.heldBytes }
    var fieldsSize: Int { session.fields.size }
    private(set) var written = 0
    private(set) var held = 0
    private(set) var most = 0
    private var encoder = HPACKEncoder()
    private var unread: [UInt8] = []

    init(_ options: ServerOptions = ServerOptions()) {
      session = ServerSession(options)
      session.output.removeAll()
      send {
        $0.writePreface()
        $0.writeSettings([])
        $0.writeSettingsAcknowledgement()
      }
    }

    /// - Returns: whether the connection goes on.
    @discardableResult
    func send(second: Int64 = 0, _ write: (inout ByteWriter) -> Void) -> Bool {
      var writer = ByteWriter()
      write(&writer)
      unread += Array(copying: writer.bytes)
      let bytes = unread
      var offset = 0
      while let event = session.next(bytes.rawBytes, &offset, second: second) {
        if case .ended(let stream, _, _) = event { session.answer(stream.slot, status: 400, content: [1, 2, 3]) }
      }
      unread.removeFirst(offset)
      written += session.output.count
      session.output.removeAll()
      held = max(held, session.heldBytes + unread.count)
      most = max(most, session.openStreams)
      return !session.hasFailed
    }

    func block(_ more: [(String, String)] = []) -> [UInt8] {
      var writer = ByteWriter()
      encoder.beginBlock(&writer)
      for (name, value) in Pair.fields("/a", more) {
        encoder.write(Array(name.utf8).rawBytes, Array(value.utf8).rawBytes, .withoutIndexing, to: &writer)
      }
      return Array(copying: writer.bytes)
    }
  }

  @Test("Rapid reset (CVE-2023-44487): bounded by the allowance, whatever the stream limit") func rapidReset() {
    let attack = Attack()
    let block = attack.block()
    var requests = 0
    for number in 0..<100_000 as Range<UInt32> {
      let goesOn = attack.send {
        $0.writeFrame(.headers, flags: [.endHeaders], stream: 2 * number + 1, block.rawBytes)
        $0.writeReset(.cancel, stream: 2 * number + 1)
      }
      guard goesOn else { break }
      requests += 1
    }
    #expect(requests == 1_000 && attack.most <= 1 && attack.held < 1_000)
  }

  @Test("HEADERS that never end (CVE-2024-27316): neither frames nor bytes beyond the limits are kept")
  func endlessHeaders() {
    for length in [0, 1, 100, 16_384] {
      let attack = Attack()
      let part = [UInt8](repeating: 0, count: length)
      attack.send { $0.writeFrame(.headers, stream: 1, part.rawBytes) }
      var frames = 0
      while frames < 1_000, attack.send({ $0.writeFrame(.continuation, stream: 1, part.rawBytes) }) { frames += 1 }
      #expect(frames <= 16 && attack.held <= 65_536 + 16_384 + 9)
      #expect(attack.hasFailed)
    }
    // A frame that is announced and never comes.
    let attack = Attack()
    attack.send { $0.write(FrameHeader(.headers, flags: .endHeaders, stream: 1, payloadLength: 16_384)) }
    #expect(attack.held <= 9)
  }

  @Test("A field section that is small on the wire and large when it is read (HPACK bomb)") func compressionBomb() {
    let attack = Attack()
    var writer = ByteWriter()
    // An entry of 4,000 bytes, and 16,000 references to it.
    writer.write(0x40 as UInt8)
    HPACKInteger.write(1, prefix: 7, pattern: 0, to: &writer)
    writer.write(UInt8(ascii: "x"))
    HPACKInteger.write(4_000, prefix: 7, pattern: 0, to: &writer)
    for _ in 0..<4_000 { writer.write(UInt8(ascii: "y")) }
    for _ in 0..<12_000 { writer.write(0xbe as UInt8) }
    let block = Array(copying: writer.bytes)
    attack.send {
      $0.writeFrame(.headers, stream: 1, Array(block.prefix(16_000)).rawBytes)
      $0.writeFrame(.continuation, flags: .endHeaders, stream: 1, Array(block.dropFirst(16_000)).rawBytes)
    }
    #expect(attack.hasFailed)
    #expect(attack.fieldsSize <= 65_536)
  }

  @Test("Requests that never end: their content is kept up to the window and the stream limit") func endlessRequests() {
    var options = ServerOptions()
    options.streamLimit = 100
    let attack = Attack(options)
    let content = [UInt8](repeating: 0x20, count: 600)
    for number in 0..<200 as Range<UInt32> {
      let block = attack.block()
      attack.send {
        $0.writeFrame(.headers, flags: .endHeaders, stream: 2 * number + 1, block.rawBytes)
        $0.writeFrame(.data, stream: 2 * number + 1, content.rawBytes)
      }
    }
    #expect(attack.most == 100 && !attack.hasFailed)
    #expect(attack.held == 100 * 600)
    for _ in 0..<100 {
      for number in 0..<100 as Range<UInt32> {
        attack.send { $0.writeFrame(.data, stream: 2 * number + 1, content.rawBytes) }
      }
    }
    #expect(attack.held <= 100 * options.keptContent)
  }

  @Test("Windows of one byte (CVE-2019-9517): answers wait in the session, and are not written again and again")
  func smallWindows() {
    let attack = Attack()
    attack.send { $0.writeSettings([Setting(.initialWindowSize, 0)]) }
    let content: [UInt8] = [0x20]
    for number in 0..<900 as Range<UInt32> {
      let block = attack.block()
      attack.send {
        $0.writeFrame(.headers, flags: .endHeaders, stream: 2 * number + 1, block.rawBytes)
        $0.writeFrame(.data, flags: .endStream, stream: 2 * number + 1, content.rawBytes)
      }
    }
    #expect(attack.openStreams == 900)
    let before = attack.written
    var updates = 0
    while updates < 100_000, attack.send({ $0.writeWindowUpdate(1, stream: 1) }) { updates += 1 }
    // Three bytes in three frames; then nothing, until there are too many.
    #expect(updates <= 10_020 && attack.hasFailed)
    #expect(attack.written - before < 3 * 10 + 100)
    // The window that moves up and down (CVE-2019-9511) costs SETTINGS, which are limited.
    let other = Attack()
    var changes = 0
    while changes < 10_000, other.send({ $0.writeSettings([Setting(.initialWindowSize, UInt32(changes & 1))]) }) {
      changes += 1
    }
    #expect(changes <= 100 && other.hasFailed)
  }

  @Test("What a client can make the session write is in proportion to what it sends") func amplification() {
    for flood in [
      { @Sendable (writer: inout ByteWriter) in writer.writePing(1) }, { @Sendable in $0.writeSettings([]) },
      { @Sendable in $0.writeFrame(FrameType(rawValue: 0x77), stream: 1, [1].rawBytes) },
    ] as [@Sendable (inout ByteWriter) -> Void] {
      let attack = Attack()
      var sent = 0
      for _ in 0..<20_000 {
        var writer = ByteWriter()
        flood(&writer)
        sent += writer.count
        guard attack.send(flood) else { break }
      }
      #expect(attack.hasFailed)
      #expect(attack.written <= 2 * sent + 200)
    }
  }

  @Test("A thousand connections of such clients hold what the limits say") func many() {
    var held = 0
    for number in 0..<1_000 {
      let attack = Attack()
      let part = [UInt8](repeating: 0, count: 100 + number)
      for _ in 0..<10 { attack.send { $0.writeFrame(number & 1 == 0 ? .headers : .data, stream: 1, part.rawBytes) } }
      held += attack.heldBytes
    }
    #expect(held <= 1_000 * 1_100)
  }
}
