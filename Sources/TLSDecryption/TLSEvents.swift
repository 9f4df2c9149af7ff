import TLSFoundation

/// The side of a connection that sent something.
public enum TLSSide: Sendable {
  case client, server
  var other: TLSSide { self == .client ? .server : .client }
  var name: String { self == .client ? "client" : "server" }
}

/// The packet in which bytes were captured, and its time. It is passed through: a record has the point of its last
/// byte.
public struct CapturePoint: Sendable {
  /// Nanoseconds since 1970, or the caller's value for "unknown".
  public var time: Int64
  public var packet: Int
  /// The packet's position in both TCP streams, for the caller; nothing here depends on it.
  package var sequence: UInt32 = 0
  package var acknowledgement: UInt32 = 0
  package var isAhead = false

  public init(time: Int64, packet: Int) {
    self.time = time
    self.packet = packet
  }
}

/// The reason why plaintext is missing.
public enum PlaintextGapReason: Sendable {
  /// Its records were sent, and are not in the capture.
  case lost
  /// The snap length cut its records.
  case truncated
  /// Its records are in the capture, and could not be opened.
  case undecrypted
}

/// The plaintext of one direction, in stream order.
public enum PlaintextEvent: ~Escapable {
  /// The content of a record, borrowed for the time of the call. It was verified, with one exception: the first record
  /// after a gap in TLS 1.0 and SSL 3.0 whose MAC lost a block; there only the padding is checked.
  case bytes(RawSpan)
  /// About `length` bytes are missing: exactly, when the suite is an AEAD.
  case gap(length: Int, reason: PlaintextGapReason)
  /// Nothing more will come in this direction.
  case end
}

/// Receives plaintext. `offset` is the number of plaintext bytes of the direction before the event.
public typealias PlaintextReceiver = (
  _ event: borrowing PlaintextEvent, _ side: TLSSide, _ offset: Int, _ point: CapturePoint
) -> Void

/// The summary of a TLS connection.
public struct TLSSummary: Sendable, Equatable {
  public var version: TLSVersion?
  public var suite: CipherSuite?
  /// The key exchange as the suite names it; for TLS 1.3 the group, and whether a pre-shared session key was used.
  public var keyExchange: String?
  /// `nil` if unknown.
  public var isResumed: Bool?
  /// There were no sealed records, or at least some were opened; `problem` states why others were not.
  public var isDecrypted = true
  /// Everything encrypted was decrypted, as far as known.
  public var isWhole = true
  /// The reason why not everything could be decrypted, in words.
  public var problem: String?
  /// The subject of the client's certificate, presented now or when the session began.
  public var clientSubject: String?
  /// The end of that certificate's validity, in seconds since 1970, and the environments that its extensions name.
  public var certificateEnds: Int?
  public var isForSandbox = false
  public var isForProduction = false
  /// The first alert that was no close_notify, and who sent it.
  public var alert: String?
  /// ALPN protocol names: those that the client offered, and the server's choice, if it was seen.
  public var offeredProtocols: [String] = []
  public var chosenProtocol: String?
  /// Bytes in the capture, with all that TLS adds, and bytes of plaintext.
  public var wireBytes = 0
  public var plaintextBytes = 0

  package init() {}
}
