import Bytes
import HTTP2
import Measurement
import Testing

@testable import GatewaySimulator

/// What faults make of a connection: when bytes come, when it closes, and what its books are. The time is simulated.
@Suite("Connections over HTTP/2 that faults disturb")
struct HTTP2TransportTests {
  private final class Provider {
    let client: SimulatedClient
    private var encoder = HPACKEncoder()
    private var stream: UInt32 = 1

    init(_ gateway: SimulatedGateway) throws {
      client = try gateway.connect(to: .http2)
      var writer = ByteWriter()
      let preface = ByteWriter.http2Preface
      writer.write(preface.rawBytes)
      writer.writeSettings([])
      writer.writeSettingsAcknowledgement()
      client.send(Array(copying: writer.bytes))
    }

    func push() {
      var block = ByteWriter()
      encoder.beginBlock(&block)
      for (name, value) in HTTP2Conversation.fields() {
        encoder.write(Array(name.utf8).rawBytes, Array(value.utf8).rawBytes, .incremental, to: &block)
      }
      var writer = ByteWriter()
      writer.writeFrame(.headers, flags: .endHeaders, stream: stream, block.bytes)
      let content = Array("{}".utf8)
      writer.writeFrame(.data, flags: .endStream, stream: stream, content.rawBytes)
      stream += 2
      client.send(Array(copying: writer.bytes))
    }

    func ping() {
      var writer = ByteWriter()
      writer.writePing(7)
      client.send(Array(copying: writer.bytes))
    }

    /// The times and the streams of whole frames of a type.
    func frames(_ type: FrameType) -> [(time: Duration, stream: UInt32)] {
      var (frames, bytes): ([(Duration, UInt32)], [UInt8]) = ([], [])
      for arrival in client.arrivals {
        bytes += arrival.bytes
        while bytes.count >= FrameHeader.length {
          let header = FrameHeader(bytes.rawBytes, at: 0)
          guard bytes.count >= header.frameLength else { break }
          if header.type == type { frames.append((arrival.time, header.stream)) }
          bytes.removeFirst(header.frameLength)
        }
      }
      return frames
    }
  }

  private func gateway(_ faults: String..., configure: (inout SimulatorOptions) -> Void = { _ in }) throws
    -> SimulatedGateway
  {
    try SimulatedGateway { options in
      options.http2 = HTTP2Service(address: .init(host: "127.0.0.1", port: 0))
      options.behavior.http2Faults = try faults.map { try HTTP2Fault($0) }
      configure(&options)
    }
  }

  @Test("An answer that is delayed comes at its time, without anything to read") func delay() throws {
    let gateway = try gateway("delay,time=1234ms")
    let provider = try Provider(gateway)
    provider.push()
    gateway.advance(by: .milliseconds(500))
    provider.push()
    gateway.advance(by: .seconds(3))
    #expect(provider.frames(.headers).map(\.stream) == [1, 3])
    #expect(provider.frames(.headers).map(\.time) == [.milliseconds(1_234), .milliseconds(1_734)])
    provider.client.close()
    let http2 = try #require(gateway.end().http2)
    #expect((http2.accepted, http2.unknown.accepted, http2.faults["delay"]) == (2, 0, 2))
  }

  @Test("A connection that ends while an answer waits: accepted, and of unknown fate") func endWhileWaiting() throws {
    let gateway = try gateway("delay,time=10s")
    let provider = try Provider(gateway)
    provider.push()
    provider.client.close()
    gateway.advance(by: .seconds(20))
    let http2 = try #require(gateway.end().http2)
    #expect((http2.accepted, http2.unknown.accepted, http2.answers.isEmpty) == (1, 1, true))
  }

  @Test("An answer that is due after its stream was reset, and the connection has given memory back") func forgotten()
    throws
  {
    let gateway = try gateway("delay,time=10s,times=1")
    let provider = try Provider(gateway)
    provider.push()
    provider.client.send([0, 0, 4, 3, 0, 0, 0, 0, 1, 0, 0, 0, 8])
    gateway.advance(by: .seconds(20))
    provider.push()
    #expect(provider.frames(.headers).map(\.stream) == [3])
    #expect(gateway.end().http2?.unknown.accepted == 1)
  }

  @Test("A close within an answer: FIN, and what still comes is counted until the peer closes too") func fin() throws {
    let gateway = try gateway("close,bytes=5")
    let provider = try Provider(gateway)
    let before = provider.client.received.count
    provider.push()
    #expect(provider.client.received.count == before + 5)
    #expect(provider.client.endedAt != nil && provider.client.isOpen)
    provider.push()
    provider.ping()
    gateway.advance(by: .seconds(1))
    #expect(provider.client.isOpen)
    provider.client.finishWriting()
    #expect(!provider.client.isOpen)
    #expect(provider.client.received.count == before + 5)
    let http2 = try #require(gateway.end().http2)
    #expect((http2.received, http2.accepted, http2.discarded) == (2, 1, 1))
    #expect((http2.unknown.accepted, http2.unknown.discarded) == (1, 1))
  }

  @Test("A reset within an answer ends the connection at once") func rst() throws {
    let gateway = try gateway("close,way=rst,bytes=5")
    let provider = try Provider(gateway)
    provider.push()
    #expect(!provider.client.isOpen)
    #expect(gateway.end().http2?.unknown.accepted == 1)
  }

  @Test("A connection that was idle is silent for ever: no answer, no PING, no end by the gateway") func silence()
    throws
  {
    let gateway = try gateway("silence,idle=10s") {
      $0.behavior.connection.idle = .seconds(60)
      $0.behavior.connection.lifetime = .seconds(600)
    }
    let provider = try Provider(gateway)
    provider.push()
    gateway.advance(by: .seconds(9))
    provider.push()
    gateway.advance(by: .seconds(11))
    let bytes = provider.client.received.count
    #expect(provider.frames(.headers).count == 2)
    provider.push()
    provider.ping()
    gateway.leap(by: .seconds(100_000))
    #expect(provider.client.received.count == bytes && provider.client.isOpen)
    // Another one is not silent.
    let other = try Provider(gateway)
    other.push()
    #expect(other.frames(.headers).count == 1)
    provider.client.close()
    let http2 = try #require(gateway.end().http2)
    #expect((http2.accepted, http2.discarded, http2.unknown.discarded) == (3, 1, 1))
    #expect(http2.faults == ["silence": 1])
  }

  @Test("After GOAWAY the connection closes when what waits is answered") func drain() throws {
    let gateway = try gateway("goaway,every=2", "delay,time=2s")
    let provider = try Provider(gateway)
    provider.push()
    provider.push()
    #expect(provider.frames(.goAway).count == 1 && provider.client.endedAt == nil)
    provider.push()
    gateway.advance(by: .seconds(2))
    #expect(provider.frames(.headers).map(\.stream) == [1, 3])
    #expect(provider.client.endedAt == .seconds(2))
    let http2 = try #require(gateway.end().http2)
    #expect((http2.accepted, http2.discarded, http2.unknown.discarded) == (2, 1, 0))
  }

  @Test("Silent streams do not make a connection time out, and a request that has begun does") func frameTimeout()
    throws
  {
    let gateway = try gateway("silence") { $0.frameTimeout = .seconds(30) }
    let provider = try Provider(gateway)
    provider.push()
    gateway.leap(by: .seconds(1_000))
    #expect(provider.client.isOpen)
    provider.client.send([0, 0, 9, 1, 4, 0, 0, 0, 9])
    gateway.leap(by: .seconds(1_000))
    gateway.leap(by: .seconds(1_000))
    #expect(!provider.client.isOpen)
    #expect(gateway.end().http2?.unknown.accepted == 1)
  }

  @Test("Faults are changed while a connection is open") func change() throws {
    let gateway = try gateway()
    let provider = try Provider(gateway)
    provider.push()
    #expect(provider.frames(.headers).count == 1)
    var behavior = gateway.shared.options.behavior
    behavior.http2Faults = [try HTTP2Fault("goaway,every=5s"), try HTTP2Fault("refuse,from=1s")]
    gateway.books.adopt(Conduct(behavior, DevicePopulation(), after: gateway.books.conduct))
    provider.push()
    #expect(provider.frames(.headers).count == 2)
    gateway.advance(by: .seconds(1))
    provider.push()
    #expect(provider.frames(.reset).count == 1)
    gateway.advance(by: .seconds(5))
    #expect(provider.frames(.goAway).map(\.time) == [.seconds(5)])
    #expect(provider.client.endedAt == .seconds(5))
    #expect(gateway.end().http2?.faults == ["refuse": 1, "goaway": 1])
  }
}
