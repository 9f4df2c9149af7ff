import COpenSSL
import NIOCore
import TLSFoundation
import Testing

@testable import TLSTransport

@Suite("sessions that resume")
struct ResumptionTests {
  /// How sessions are resumed.
  enum ResumptionMethod: String, CaseIterable {
    case tickets, ids, off

    func apply(to configuration: inout TLSConfiguration) {
      configuration.usesTickets = self == .tickets
      configuration.resumesSessions = self != .off
    }
  }

  /// Connects, sends a byte each way, and lets go without a word.
  private func converse(
    _ client: TLSContext, _ server: TLSContext, _ sessions: SessionCache?, name: String = "localhost"
  )
    throws -> (client: TLSConnectionInfo, server: TLSConnectionInfo)
  {
    let pair = try TLSPair(client, server, serverName: name, sessions: sessions)
    try pair.connect()
    pair.client.send([1])
    pair.server.send([2])
    pair.pump()
    #expect(pair.server.observer.received == [1])
    #expect(pair.client.observer.received == [2])
    // No close_notify: it would make the session good by itself.
    for side in [pair.client, pair.server] {
      side.channel.triggerUserOutboundEvent(TLSClose.abrupt, promise: nil)
    }
    let there = try #require(pair.server.observer.info, "\(pair.server.observer.errorText)")
    return (try #require(pair.client.observer.info), there)
  }

  @Test(
    "Up to TLS 1.2: by ticket, by id, not at all", arguments: [TLSVersion.tls10, .tls11, .tls12],
    ResumptionMethod.allCases)
  func old(version: TLSVersion, way: ResumptionMethod) throws {
    let credentials = TestCredentials.p256
    let client = try credentials.client { $0.versions = version...version }
    let server = try credentials.server(way.apply)
    let sessions = SessionCache()
    for turn in 0..<4 {
      let (here, there) = try converse(client, server, sessions)
      #expect(here.isResumed == (way != .off && turn > 0), "turn \(turn)")
      #expect(there.isResumed == here.isResumed)
      #expect(there.peer?.topic == TestCredentials.topic)
      #expect(here.peer?.subject == "CN=apnscope gateway")
      #expect(there.serverName == "localhost")
      #expect(sessions.count == (way == .off ? 0 : 1))
    }
  }

  @Test("TLS 1.3: as many times as there are tickets", arguments: [ResumptionMethod.tickets, .ids], [0, 1, 2])
  func new(way: ResumptionMethod, tickets: Int) throws {
    let credentials = TestCredentials.p256
    let client = try credentials.client { $0.versions = .tls13 ... .tls13 }
    let server = try credentials.server {
      way.apply(to: &$0)
      $0.ticketCount = tickets
    }
    let sessions = SessionCache()
    for turn in 0..<4 {
      let (here, there) = try converse(client, server, sessions)
      #expect(here.isResumed == (tickets > 0 && turn > 0), "turn \(turn)")
      #expect(there.isResumed == here.isResumed)
      #expect(there.peer?.topic == TestCredentials.topic)
      #expect(sessions.count >= min(tickets, 1))
    }
    let before = sessions.count
    // Taken out by a connection that never is.
    _ = try TLSPair(client, server, sessions: sessions)
    #expect(sessions.count == max(0, before - 1))
  }

  @Test("TLS 1.3 off") func newOff() throws {
    let credentials = TestCredentials.p256
    let server = try credentials.server {
      ResumptionMethod.off.apply(to: &$0)
      $0.ticketCount = 2
    }
    let sessions = SessionCache()
    let client = try credentials.client()
    for _ in 0..<2 { #expect(try converse(client, server, sessions).client.isResumed == false) }
    #expect(sessions.count == 0)
  }

  @Test("A client without a cache, one that resumes nothing, one whose cache was emptied") func clients() throws {
    let credentials = TestCredentials.p256
    let server = try credentials.server()
    func versions(_ configuration: inout TLSConfiguration) { configuration.versions = .tls12 ... .tls12 }
    let client = try credentials.client(versions)
    for _ in 0..<2 { #expect(try converse(client, server, nil).client.isResumed == false) }
    let sessions = SessionCache()
    let never = try credentials.client {
      versions(&$0)
      $0.resumesSessions = false
    }
    for _ in 0..<2 { #expect(try converse(never, server, sessions).client.isResumed == false) }
    #expect(sessions.count == 0)
    _ = try converse(client, server, sessions)
    #expect(sessions.count == 1)
    sessions.removeAll()
    #expect(try converse(client, server, sessions).client.isResumed == false)
    #expect(try converse(client, server, sessions).client.isResumed)
  }

  @Test("A server that forgot the session makes a new one") func forgotten() throws {
    let credentials = TestCredentials.p256
    for version in [TLSVersion.tls12, .tls13] {
      let client = try credentials.client { $0.versions = version...version }
      let sessions = SessionCache()
      _ = try converse(client, credentials.server { $0.ticketCount = 1 }, sessions)
      let another = try credentials.server { $0.ticketCount = 1 }
      #expect(try converse(client, another, sessions).server.isResumed == false)
      #expect(try converse(client, another, sessions).server.isResumed)
    }
  }

  @Test("A session is not resumed where something else would have been verified") func verification() throws {
    let credentials = TestCredentials.p256
    let server = try credentials.server { $0.identity = try? TestCredentials.strangers.gateway() }
    let sessions = SessionCache()
    let careless = try credentials.client {
      $0.peerCertificate = .notAsked
      $0.versions = .tls12 ... .tls12
    }
    for turn in 0..<2 { #expect(try converse(careless, server, sessions).client.isResumed == (turn == 1)) }
    let careful = try credentials.client { $0.versions = .tls12 ... .tls12 }
    let pair = try TLSPair(careful, server, sessions: sessions)
    try pair.connect()
    #expect(pair.client.observer.errorText.contains("certificate verify failed"))

    // The same context, and a name that was not verified before.
    let honest = try credentials.server()
    for verifies in [false, true] {
      let pair = try TLSPair(
        TLSHandler(
          client: careful, serverName: "gateway.push.apple.com", verifiesName: verifies, sessions: sessions,
          sessionKey: "one"), TLSHandler(server: honest))
      try pair.connect()
      #expect((pair.client.observer.info == nil) == verifies)
    }
  }

  @Test("Another identity does not resume the session of the first") func identities() throws {
    let first = TestCredentials.p256
    let server = try first.server { $0.peerCertificate = .optional }
    let sessions = SessionCache()
    let named = try first.client { $0.versions = .tls12 ... .tls12 }
    _ = try converse(named, server, sessions)
    let nameless = try first.client {
      $0.identity = nil
      $0.versions = .tls12 ... .tls12
    }
    let (_, there) = try converse(nameless, server, sessions)
    #expect(!there.isResumed)
    #expect(there.peer == nil)
  }

  @Test("A connection that failed is not resumed") func failed() throws {
    let credentials = TestCredentials.p256
    let client = try credentials.client { $0.versions = .tls12 ... .tls12 }
    let server = try credentials.server { ResumptionMethod.ids.apply(to: &$0) }
    let sessions = SessionCache()
    do {
      let pair = try TLSPair(client, server, sessions: sessions)
      try pair.connect()
      pair.client.deliver(Array("this is no TLS at all".utf8))
      pair.pump()
      #expect(pair.client.observer.errors.count == 1)
    }
    #expect(try converse(client, server, sessions).client.isResumed == false)
  }

  @Test("A TLS 1.3 server says nothing after the handshake by default, and with tickets it does", arguments: [0, 1, 2])
  func silence(tickets: Int) throws {
    let credentials = TestCredentials.p256
    let pair = try TLSPair(
      credentials.client { $0.versions = .tls13 ... .tls13 }, credentials.server { $0.ticketCount = tickets })
    try pair.server.activate()
    try pair.client.activate()
    pair.carry(from: pair.client, to: pair.server)
    pair.carry(from: pair.server, to: pair.client)
    #expect(pair.client.observer.info != nil)
    #expect(pair.server.observer.info == nil)
    pair.carry(from: pair.client, to: pair.server)
    #expect(pair.server.observer.info != nil)
    // All of them in one write.
    #expect(pair.server.wire.sent.count == min(tickets, 1))
  }

  @Test("Sessions of a server's cache: the oldest go") func cacheSize() throws {
    let credentials = TestCredentials.p256
    let server = try credentials.server {
      ResumptionMethod.ids.apply(to: &$0)
      $0.sessionCacheSize = 2
    }
    let client = try credentials.client { $0.versions = .tls12 ... .tls12 }
    let caches = (0..<3).map { _ in SessionCache() }
    for cache in caches { _ = try converse(client, server, cache) }
    // The last two, newest first: a miss makes a new session and pushes out another.
    #expect(try converse(client, server, caches[2]).client.isResumed)
    #expect(try converse(client, server, caches[1]).client.isResumed)
    #expect(try converse(client, server, caches[0]).client.isResumed == false)
  }

  @Test("A cache keeps the newest tickets, and hands out each once") func cache() throws {
    let cache = SessionCache(capacity: 2)
    let key = SessionCache.Key(context: 1, verifiedName: nil, name: "a")
    func session(_ version: TLSVersion) throws -> TLSSession {
      let made = try unsafe #require(unsafe SSL_SESSION_new())
      unsafe SSL_SESSION_set_protocol_version(made, Int32(version.rawValue))
      return unsafe TLSSession(owning: made)
    }
    let tickets = try (0..<3).map { _ in try session(.tls13) }
    for ticket in tickets { cache.add(ticket, for: key) }
    #expect(cache.count == 2)
    #expect(cache.take(for: .init(context: 2, verifiedName: nil, name: "a")) == nil)
    #expect(cache.take(for: key) === tickets[2])
    #expect(cache.take(for: key) === tickets[1])
    #expect(cache.take(for: key) == nil)
    let old = try (0..<2).map { _ in try session(.tls12) }
    for session in old { cache.add(session, for: key) }
    #expect(cache.count == 1)
    for _ in 0..<3 { #expect(cache.take(for: key) === old[1]) }
  }
}
