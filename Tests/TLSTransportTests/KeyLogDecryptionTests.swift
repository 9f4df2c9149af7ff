import Bytes
import Foundation
import NIOCore
import TLSDecryption
import TestSupport
import Testing

@testable import TLSTransport

@Suite("key logs open recordings")
struct KeyLogDecryptionTests {
  @Test("What two connections said, the second resumed", arguments: Agreement.all)
  func opens(_ agreement: Agreement) throws {
    let credentials = TestCredentials.of(agreement.kind)
    try withTemporaryFolder { folder in
      let path = folder.appending(path: "keys.log").path
      let log = try KeyLogFile(path: path)
      let client = try credentials.client(agreement.apply)
      let server = try credentials.server {
        $0.keyLog = log
        $0.ticketCount = 1
      }
      let sessions = SessionCache()
      for turn in 0..<2 {
        let pair = try TLSPair(client, server, sessions: sessions)
        var wire: [(side: TLSSide, bytes: [UInt8])] = []
        pair.onCarry = { wire.append(($0 ? .client : .server, Array($1.readableBytesView))) }
        try pair.connect()
        let said = (client: pattern(40_000, turn), server: pattern(300, turn))
        pair.client.send(said.client)
        pair.server.send(said.server)
        pair.client.channel.close(mode: .output, promise: nil)
        pair.pump()
        #expect(pair.server.observer.info?.isResumed == (turn == 1))

        let secrets = Secrets()
        secrets.add(try KeyLog(contentsOf: path, maximumLength: 1 << 20, maximumLines: 1_000))
        let stream = TLSStream(secrets: secrets, limits: TLSLimits())
        let point = CapturePoint(time: 0, packet: 1)
        var read: (client: [UInt8], server: [UInt8]) = ([], [])
        for (side, bytes) in wire {
          stream.receive(bytes.rawBytes, from: side, at: point) { event, side, _, _ in
            guard case .bytes(let bytes) = event else { return }
            if side == .client { read.client += Array(copying: bytes) } else { read.server += Array(copying: bytes) }
          }
        }
        #expect(read.client == said.client)
        #expect(read.server == said.server)
        #expect(stream.summary.problem == nil)
      }
    }
  }
}
