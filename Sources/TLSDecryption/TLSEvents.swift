import TLSFoundation

/// The side of a connection that sends.
public enum TLSSide: Sendable {
  case client, server
  var other: TLSSide { self == .client ? .server : .client }
  var name: String { self == .client ? "client" : "server" }
}

/// The packet with some bytes, and its time. Values are passed through: plaintext has the point of the last byte of its
/// record.
public struct CapturePoint: Sendable {
  /// The time in nanoseconds since 1970, or the caller's value for "unknown".
  public var time: Int64
  /// The caller's number of the packet.
  public var packet: Int
  /// The packet's position in both TCP streams, for the caller; nothing here depends on it.
  package var sequence: UInt32 = 0
  package var acknowledgement: UInt32 = 0
  package var isAhead = false

  /// Makes a point.
  ///
  /// - Parameters:
  ///   - time: nanoseconds since 1970; only passed through.
  ///   - packet: the number of the packet; only passed through.
  public init(time: Int64, packet: Int) {
    self.time = time
    self.packet = packet
  }
}

/// The reason why plaintext is missing.
public enum PlaintextGapReason: Sendable {
  /// The records were sent, but not captured.
  case lost
  /// The snap length truncated the records.
  case truncated
  /// The records were captured, but could not be decrypted.
  case undecrypted
}

/// The plaintext of one direction, in stream order.
public enum PlaintextEvent: ~Escapable {
  /// The content of a record, borrowed for the call. It was verified, with one exception: the first record after a gap
  /// in TLS 1.0 or SSL 3.0 with a block cipher, whose MAC needs a missing block; only its padding was checked.
  case bytes(RawSpan)
  /// About `length` bytes are missing; the length is exact if the suite is an AEAD.
  case gap(length: Int, reason: PlaintextGapReason)
  /// The end of the direction.
  case end
}

/// Receives plaintext. `offset` is the number of plaintext bytes of the direction before the event.
public typealias PlaintextReceiver = (
  _ event: borrowing PlaintextEvent, _ side: TLSSide, _ offset: Int, _ point: CapturePoint
) -> Void

/// The summary of a TLS connection.
public struct TLSSummary: Sendable, Equatable {
  /// The protocol version; `nil` if unknown.
  public var version: TLSVersion?
  /// The cipher suite; `nil` if unknown.
  public var suite: CipherSuite?
  /// The key exchange as named by the suite; in TLS 1.3 the group, and whether a pre-shared session key was used.
  public var keyExchange: String?
  /// Whether the session was resumed; `nil` if unknown.
  public var isResumed: Bool?
  /// Whether at least some encrypted records were decrypted, or there were none; `problem` has the reason for others.
  public var isDecrypted = true
  /// Whether all encrypted records were decrypted, as far as known.
  public var isWhole = true
  /// The reason why records could not be decrypted, in words.
  public var problem: String?
  /// The subject of the client's certificate, from this handshake or that of the resumed session.
  public var clientSubject: String?
  /// The end of the validity of the client's certificate, in seconds since 1970.
  public var certificateEnds: Int?
  /// Whether an extension of the client's certificate names the sandbox environment.
  public var isForSandbox = false
  /// Whether an extension of the client's certificate names the production environment.
  public var isForProduction = false
  /// The first alert other than close_notify, and its sender.
  public var alert: String?
  /// The ALPN protocol names that the client offered.
  public var offeredProtocols: [String] = []
  /// The ALPN protocol name that the server chose, if it was seen.
  public var chosenProtocol: String?
  /// The number of bytes in the capture, with the overhead of TLS.
  public var wireBytes = 0
  /// The number of bytes of plaintext.
  public var plaintextBytes = 0

  package init() {}
}
