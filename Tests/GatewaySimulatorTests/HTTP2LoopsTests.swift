import Bytes
import HTTP2
import TestSupport
import Testing

@testable import GatewaySimulator

/// The provider API on several event loops, changed by the test's thread while connections push.
@Suite("HTTP/2 on several loops", .waiting)
struct HTTP2LoopsTests {
  /// One provider's connection, which numbers its devices.
  private struct Sender {
    private static let digits = Array("0123456789abcdef")

    let client: Client
    var encoder = HPACKEncoder()
    var decoder = HPACKDecoder()
    var received: [UInt8] = []
    var next: UInt32 = 1
    var statuses: [String: Int] = [:]
    var resets = 0
    var answered: Set<UInt32> = []

    init(_ port: Int) throws {
      client = try Client(port)
      var writer = ByteWriter()
      let preface = ByteWriter.http2Preface
      writer.write(preface.rawBytes)
      writer.writeSettings([])
      writer.writeSettingsAcknowledgement()
      try client.send(Array(copying: writer.bytes))
    }

    mutating func push(_ count: Int, device: inout UInt8) throws {
      var writer = ByteWriter()
      for _ in 0..<count {
        device &+= 1
        var block = ByteWriter()
        let token = String(repeating: "\(Self.digits[Int(device >> 4)])\(Self.digits[Int(device & 15)])", count: 32)
        for (name, value) in [
          (":method", "POST"), (":scheme", "http"), (":path", "/3/device/\(token)"), ("apns-topic", "com.example.app"),
          ("apns-collapse-id", "\(device & 3)"),
        ] {
          encoder.write(Array(name.utf8).rawBytes, Array(value.utf8).rawBytes, to: &block)
        }
        writer.writeFrame(.headers, flags: .endHeaders, stream: next, block.bytes)
        let payload = Array(#"{"aps":{"alert":"number","badge":\#(device)}}"#.utf8)
        writer.writeFrame(.data, flags: .endStream, stream: next, payload.rawBytes)
        next += 2
      }
      try client.send(Array(copying: writer.bytes))
    }

    /// Reads until each stream has ended.
    mutating func readAll() throws {
      while answered.count < Int(next / 2) {
        let bytes = try client.receive()
        try #require(!bytes.isEmpty, "the gateway has closed the connection")
        received += bytes
        var start = 0
        while let header = FrameHeader(parsing: received.rawBytes.extracting(start..<received.count)),
          start + header.frameLength <= received.count
        {
          let payload = start + header.frameLength - header.payloadLength
          start += header.frameLength
          var isNew = true
          switch header.type {
          case .headers:
            var fields = FieldList()
            let block = Array(received[payload..<start])
            let fault = decoder.decode(block.rawBytes, into: &fields)
            try #require(fault == nil)
            let status = try #require(fields.fields.first)
            statuses[String(decoding: Array(copying: fields.value(of: status)), as: UTF8.self), default: 0] += 1
            isNew = answered.insert(header.stream).inserted
          case .reset:
            resets += 1
            isNew = answered.insert(header.stream).inserted
          default: break
          }
          #expect(isNew)
        }
        received.removeFirst(start)
      }
    }
  }

  @Test("Each request has one answer, and one place in the books, whatever is changed meanwhile")
  func changes() async throws {
    var options = SimulatorOptions()
    (options.gateway, options.feedback, options.threads) = (nil, nil, 4)
    options.payloads = PayloadScrutiny()
    var service = HTTP2Service(address: .init(host: "127.0.0.1", port: 0))
    service.streamLimit = 10_000
    options.http2 = service
    let simulator = try await Simulator.start(options, feedbackList: FeedbackList(path: nil))
    let port = try #require(simulator.http2?.port)
    var senders = try (0..<12).map { _ in try Sender(port) }
    var device: UInt8 = 0
    for round in 0..<24 {
      for place in senders.indices { try senders[place].push(20, device: &device) }
      switch round % 8 {
      case 0: try await simulator.disturb(HTTP2Fault("refuse,every=7,times=40"))
      case 1: try await simulator.reject(.init(.every(5), times: 30))
      case 2: try await simulator.setDevices((0..<40).map { ([UInt8](repeating: $0, count: 32), .offline) })
      case 3: try await simulator.disturb(HTTP2Fault("delay,time=3ms,every=3,times=50"))
      case 4: await simulator.beSilent(for: .milliseconds(5))
      case 5: simulator.bringDevicesOnline()
      case 6: try await simulator.setDevices((60..<90).map { ([UInt8](repeating: $0, count: 32), .uninstalled) })
      // The last faults stay, so that they have hits however late requests are read.
      case 7 where round < 23: try await simulator.change { $0.http2Faults = [] }
      default: break
      }
      let counts = await simulator.snapshot().gateway
      #expect(counts.received >= counts.accepted + counts.rejected.values.reduce(0, +) + counts.discarded)
    }
    var (statuses, resets) = ([String: Int](), 0)
    for place in senders.indices {
      try senders[place].readAll()
      statuses.merge(senders[place].statuses, uniquingKeysWith: +)
      resets += senders[place].resets
      senders[place].client.close()
    }
    let ledger = await simulator.stop()
    #expect(ledger.gateway.received == 24 * 12 * 20)
    #expect(statuses["200"] == ledger.gateway.accepted)
    #expect(resets == ledger.gateway.discarded && resets > 0)
    #expect(ledger.gateway.rejected.values.reduce(0, +) == statuses.values.reduce(0, +) - (statuses["200"] ?? 0))
    #expect(statuses["410"] ?? 0 > 0 && statuses["400"] ?? 0 > 0)
    #expect(ledger.devices.coalesced > 0)
    #expect(ledger.payloads?.kinds.values.reduce(0, +) == ledger.gateway.received - ledger.gateway.discarded)
  }
}
