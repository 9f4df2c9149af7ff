import Bytes
import DeviceProtocol
import TLSDecryption
import TestSupport
import Testing

@testable import Dissection
@testable import Records

/// The device channel and local push through TLS.
@Suite("Messages to devices through TLS")
struct MessageTLSTests {
  private static func read(_ bytes: [UInt8], _ secrets: Secrets) throws -> Collector {
    try withTemporaryFile(bytes) { path in
      let shared = SharedSink(Collector())
      let options = DissectionOptions()
      var dissection = Dissection(into: shared, options: options, secrets: secrets)
      _ = try dissection.read(try .open(path, options: options.capture), source: path) { _ in true }
      dissection.finish()
      return shared.sink
    }
  }

  @Test(
    "With the keys all messages are read, without them none, and after losses none is invented",
    arguments: seeds(4, of: 40), [TLSConversation.Version.tls12, .tls13])
  func keys(seed: UInt64, version: TLSConversation.Version) throws {
    var random = SeededGenerator(seed: seed)
    let talk = MessageTalk.any(&random)
    let script: [TLSConversation.Action] =
      talk.words.map { .write($0.isClient ? .client : .server, $0.bytes) } + [.close(.client), .close(.server)]
    let recorded = try TLSConversation(version: version, script: script).record()
    let bytes = RecordingCapture.file(of: SegmentedRecording(recorded), serverPort: 7_777)
    let secrets = Secrets()
    secrets.add(KeyLog(Array(recorded.keyLogText.utf8), maximumLines: 1_000))
    let seen = try Self.read(bytes, secrets)
    for direction in [Direction.client, .server] {
      #expect(
        seen.messages.filter { $0.direction == direction }.map(\.message)
          == talk.words.filter { $0.isClient == (direction == .client) }.map(\.message))
    }
    let connection = try #require(seen.connections.first)
    #expect(connection.messages == talk.words.count && connection.tls?.isDecrypted == true)
    #expect(seen.gaps.isEmpty && seen.malformed.isEmpty)
    let sealed = try Self.read(bytes, Secrets())
    #expect(sealed.messages.isEmpty && sealed.connections.first?.messages == nil)
    let cut = try #require(CutCapture(bytes))
    let kept = cut.records.indices.filter { $0 < 9 || !random.happens(oneIn: 4) }
    let lossy = try Self.read(cut.file(kept), secrets)
    for message in lossy.messages { #expect(talk.words.contains { $0.message == message.message }) }
    #expect(lossy.messages.count <= talk.words.count)
  }
}
