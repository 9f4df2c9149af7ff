import PacketCapture
import TLSDecryption
import Testing

/// What is left of recorded TLS when some of it is missing, computed from where its records stand on the wire.
@Suite("Derived traces of TLS")
struct DerivedTLSTests {
  private func seen(_ trace: String) throws -> Collector { try dissect(Folder.traces.appending(path: trace).path) }

  /// How a base lies on the wire: one notification in each record, behind the client's part of the handshake.
  struct Layout: Sendable {
    var base: String
    /// Bytes of the client's stream before the first record of data.
    var handshake: Int
    /// The wire's bytes of a record with `count` bytes of data, with an empty record before it if there is one.
    var length: @Sendable (_ count: Int) -> Int

    /// 5 of header, 8 of nonce, 16 of tag.
    static let gcm = Layout(base: "tls-known-bad.pcapng", handshake: 2_604) { $0 + 29 }
    /// 5 of header, 1 of type, 16 of tag.
    static let tls13 = Layout(base: "tls13.pcap", handshake: 1_857) { $0 + 22 }
    /// 5 of header, whole blocks with 1 of padding at least, 20 of MAC behind them; the same for nothing.
    static let tls10 = Layout(base: "tls10.pcap", handshake: 1_458) { ($0 / 16 + 1) * 16 + 25 + 41 }

    /// Where each notification stands in the client's stream.
    func places(_ notifications: [SeenNotification]) -> [Range<Int>] {
      var start = handshake
      return notifications.map { notification in
        let end = start + length(notification.length)
        defer { start = end }
        return start..<end
      }
    }
  }

  struct Loss: Sendable, CustomTestStringConvertible {
    var trace: String
    var layout: Layout
    /// As in `Traces/make`.
    var lost: [Range<Int>]
    /// Whole in the capture, and still not to be had.
    var collateral: Set<Int> = []
    var isExact = true
    var testDescription: String { trace }
  }

  static let losses = [
    Loss(
      trace: "tls-gcm-loss.pcap", layout: .gcm,
      lost: [3_252..<3_576, 3_950..<4_000, 4_700..<4_760, 5_208..<5_372, 7_176..<17_016]),
    Loss(trace: "tls13-loss.pcap", layout: .tls13, lost: [2_014..<2_091, 2_400..<2_401, 3_000..<3_900]),
    // The third loss takes the block before the ninth notification, with which its own first block is opened.
    Loss(
      trace: "tls10-loss.pcap", layout: .tls10,
      lost: [1_814..<1_992, 2_400..<2_450, 2_800..<2_900, 3_416..<5_196], collateral: [8], isExact: false),
  ]

  @Test("Behind a loss all goes on, and what is missing is named", arguments: losses)
  func loss(_ loss: Loss) throws {
    let (base, derived) = (try seen(loss.layout.base), try seen(loss.trace))
    let places = loss.layout.places(base.notifications)
    let whole = base.notifications.indices.filter { index in
      !loss.lost.contains { $0.overlaps(places[index]) } && !loss.collateral.contains(index)
    }
    #expect(derived.notifications.count == whole.count)
    for (index, decoded) in zip(whole, derived.notifications) {
      var (expected, decoded) = (base.notifications[index].content, decoded.content)
      expected.index = decoded.index
      if !loss.isExact { expected.offset = decoded.offset }
      decoded.connection = expected.connection
      #expect(decoded == expected)
    }
    let missing = base.notifications.indices.filter { !whole.contains($0) }.map { base.notifications[$0].length }
    let gaps = derived.gaps.map(\.place.length).reduce(0, +)
    if loss.isExact {
      #expect(gaps == missing.reduce(0, +))
      #expect(derived.malformed.isEmpty)
    } else {
      // What is left of a record without its first block; and at most a block and a MAC too much for each record.
      let rest = derived.malformed.map(\.place.length).reduce(0, +)
      #expect((missing.reduce(0, +)...missing.reduce(0, +) + 36 * missing.count).contains(gaps + rest))
    }
    #expect(derived.gaps.allSatisfy { $0.direction == .client && ($0.reason == .lost || $0.reason == .undecrypted) })
    let record = try #require(derived.connections.first)
    #expect(record.missingBytes == loss.lost.map(\.count).reduce(0, +))
    #expect(record.tls?.isDecrypted == true)
    #expect(record.tls?.problem == nil)
  }

  @Test("An error response after a loss names what is there") func error() throws {
    let (base, derived) = (try seen("tls-known-bad.pcapng"), try seen("tls-gcm-loss.pcap"))
    #expect(base.responses.map(\.notification) == [120])
    #expect(derived.responses.map(\.notification) == [54])
    #expect(derived.notifications.last?.token == [])
    #expect(derived.responses.map(\.response) == base.responses.map(\.response))
    #expect(derived.responses.map(\.latencyNanoseconds) == base.responses.map(\.latencyNanoseconds))
  }

  @Test("An error response in four records is one") func splitError() throws {
    let seen = try seen("tls-split-error.pcap")
    #expect(seen.responses.map(\.notification) == [40])
    #expect(seen.responses.map(\.discarded) == [60])
    #expect(seen.connections.map { $0.tls?.isResumed } == [false, true])
  }

  @Test("A late error discards all that was written before it came") func lateError() throws {
    let seen = try seen("tls-late-error.pcap.gz")
    let record = try #require(seen.connections.first)
    let fates = record.fates
    #expect((fates.accepted, fates.rejected, fates.discarded, fates.unknown) == (36, 1, 137, 0))
    #expect(record.end == .serverFIN)
    let latency = try #require(seen.responses.first?.latencyNanoseconds)
    #expect((600_000_000..<610_000_000).contains(latency))
  }

  @Test("Order and copies of packets do not matter under TLS") func disorder() throws {
    let (base, derived) = (try seen("tls10.pcap"), try seen("tls10-shuffled-duplicated.pcap"))
    #expect(derived.notifications.map(\.content) == base.notifications.map(\.content))
    #expect(derived.connections.map(\.missingBytes) == [0])
    #expect(derived.connections.map(\.conflictingBytes) == [0])
    #expect(derived.connections.map(\.tls) == base.connections.map(\.tls))
  }

  @Test("Secrets before and behind the packets open the same") func secretsBehind() throws {
    let (base, derived) = (try seen("tls-known-bad.pcapng"), try seen("tls-secrets-behind.pcapng"))
    #expect(derived.notifications == base.notifications)
    #expect(derived.connections.map(\.tls) == base.connections.map(\.tls))
  }

  @Test("A snap length leaves the records that it does not cut") func snapLength() throws {
    let (base, derived) = (try seen("tls13.pcap"), try seen("tls13-snap-length-600.pcap"))
    // 546 bytes of data are left of a packet. The client's three begin with the records 0, 16 and 17.
    let places = Layout.tls13.places(base.notifications)
    let whole = [0, 16, 17].flatMap { first in
      (first..<30).prefix { places[$0].upperBound <= places[first].lowerBound + 546 }.filter { first != 16 || $0 == 16 }
    }
    #expect(whole == [0, 1, 2, 3, 16, 17, 18, 19, 20])
    #expect(derived.notifications.map(\.token) == whole.map { base.notifications[$0].token })
    #expect(derived.notifications.map(\.offset) == whole.map { base.notifications[$0].offset })
    #expect(derived.gaps.allSatisfy { $0.reason == .truncated && $0.direction == .client })
    #expect(derived.gaps.map(\.place.offset) == [base.notifications[4].offset, base.notifications[21].offset])
    #expect(derived.gaps[0].place.length == base.notifications[16].offset - base.notifications[4].offset)
  }

  @Test("TLS 1.3 opens in the middle of a session") func midSession() throws {
    let (base, derived) = (try seen("tls13.pcap"), try seen("tls13-mid-session.pcap"))
    #expect(derived.notifications.map(\.token) == base.notifications[16...].map(\.token))
    #expect(derived.notifications.map(\.payload) == base.notifications[16...].map(\.payload))
    #expect(derived.notifications.first?.offset == 0)
    #expect(derived.gaps.isEmpty)
    let tls = try #require(derived.connections.first?.tls)
    #expect(tls.version == .tls13 && tls.isResumed == nil && tls.problem == nil)
  }

  @Test(
    "What cannot be opened says why",
    arguments: [
      ("tls-mid-session.pcap", "no ServerHello in the capture"),
      ("tls-without-keys.pcap", "no key log or server key was given"),
      ("tls13-keys-missing.pcap", "is not in the key log (20 lines)"),
    ])
  func closed(trace: String, reason: String) throws {
    let seen = try seen(trace)
    let closed = seen.connections.filter { $0.tls?.isDecrypted == false }
    #expect(closed.count == 1)
    #expect(closed.allSatisfy { $0.tls?.problem?.contains(reason) == true && $0.notifications == 0 })
    #expect(seen.summaries.map(\.undecryptedConnections) == [1])
  }
}
