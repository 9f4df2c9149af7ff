import TLSFoundation

/// The facts that both directions have revealed about one handshake so far.
///
/// Each direction has its own current handshake: in a capture one direction may be read far ahead of the other.
final class Negotiation {
  /// Counts the handshakes of the connection.
  let number: Int
  /// The following handshake of the same connection.
  private var next: Negotiation?

  init(number: Int = 0) { self.number = number }

  /// The next handshake, the same object for both directions.
  func following() -> Negotiation {
    if let next { return next }
    let following = Negotiation(number: number + 1)
    next = following
    return following
  }

  var clientHello: ClientHello?
  /// A hello in SSL 2.0's form has no more than this.
  var clientRandom: [UInt8]?
  var serverHello: ServerHello? {
    didSet {
      version = serverHello?.version
      suite = serverHello?.suite
    }
  }
  /// Known from the server's hello, or from its request for another of the client's.
  private(set) var version: TLSVersion?
  private(set) var suite: CipherSuite?

  var serverCertificate: [UInt8]?
  var encryptedPremaster: [UInt8]?
  var newTicket: [UInt8]?
  var hasServerHelloDone = false
  var hasClientKeyExchange = false
  /// The server's answer to early data, from its EncryptedExtensions.
  var acceptsEarlyData: Bool?

  /// The messages up to the ClientKeyExchange, as sent, each direction's together: in a handshake up to TLS 1.2 they
  /// follow each other as ClientHello, all of the server's, all of the client's.
  private(set) var transcript = (hello: [UInt8](), server: [UInt8](), client: [UInt8]())
  private var isTranscriptCut = false

  /// The master secret that a record has proved to be right, up to TLS 1.2.
  var provenMaster: [UInt8]?

  /// Whether the session was resumed, as far as known once keys are in use; `nil` when the deciding message may be
  /// missing.
  func isResumed(isWhole: Bool) -> Bool? {
    guard let serverHello else { return nil }
    if serverHello.version >= .tls13 { return serverHello.extensions.selectsPreSharedKey }
    if hasServerHelloDone || hasClientKeyExchange || serverCertificate != nil { return false }
    return isWhole && !hasForgotten ? true : nil
  }

  /// A request for another ClientHello implies TLS 1.3.
  func noteRetryRequest() { version = version ?? .tls13 }

  func keep(_ message: [UInt8], fromClient: Bool, maximumLength: Int) {
    guard !hasClientKeyExchange || !fromClient, !isTranscriptCut else { return }
    guard transcript.server.count + transcript.client.count + message.count <= maximumLength else {
      isTranscriptCut = true
      return
    }
    if !fromClient {
      if !hasServerHelloDone { transcript.server += message }
    } else if transcript.hello.isEmpty {
      transcript.hello = message
    } else {
      transcript.client += message
    }
  }

  func dropTranscript() { transcript = ([], [], []) }

  private var hasForgotten = false

  /// Bytes of messages that are kept, as a whole or in part.
  var heldBytes: Int {
    let hello = clientHello?.extensions
    return transcript.hello.count + transcript.server.count + transcript.client.count + (serverCertificate?.count ?? 0)
      + (newTicket?.count ?? 0) + (encryptedPremaster?.count ?? 0) + (hello?.sessionTicket?.count ?? 0)
      + (hello?.preSharedKeys.reduce(0) { $0 + $1.count } ?? 0)
  }

  /// Gives them up: keys that need them are not found any more.
  func forget() {
    dropTranscript()
    (isTranscriptCut, hasForgotten) = (true, true)
    (serverCertificate, newTicket, encryptedPremaster) = (nil, nil, nil)
    clientHello?.extensions.sessionTicket = nil
    clientHello?.extensions.preSharedKeys = []
  }

  /// The hash of the handshake so far, for the extended master secret; `nil` when part of it was too long or is missing.
  func sessionHash(_ hash: HashFunction) -> [UInt8]? {
    guard !isTranscriptCut, !transcript.hello.isEmpty, hasServerHelloDone, hasClientKeyExchange else { return nil }
    return hash.hash(transcript.hello, transcript.server, transcript.client)
  }

  /// The key exchange in the words of the field.
  var keyExchange: String? {
    guard let serverHello else { return nil }
    if let name = serverHello.suite.keyExchange { return name }
    guard serverHello.version >= .tls13 else { return nil }
    let group = serverHello.extensions.keyShareGroup.map { Self.groups[$0] ?? "group \($0)" }
    return switch (group, serverHello.extensions.selectsPreSharedKey) {
    case (let group?, false): group
    case (let group?, true): "PSK, \(group)"
    case (nil, true): "PSK"
    case (nil, false): nil
    }
  }

  private static let groups: [UInt16: String] = [
    23: "secp256r1", 24: "secp384r1", 25: "secp521r1", 29: "x25519", 30: "x448", 256: "ffdhe2048", 257: "ffdhe3072",
    258: "ffdhe4096", 259: "ffdhe6144", 260: "ffdhe8192", 0x11ec: "X25519MLKEM768",
  ]
}
