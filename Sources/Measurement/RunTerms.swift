/// The phases of a run, in order.
public enum RunPhase: String, Sendable, Codable, CaseIterable {
  case connect
  case warmUp = "warm-up"
  case measured, drain

  /// Its place in their order, from 0.
  @inlinable public var index: Int {
    switch self {
    case .connect: 0
    case .warmUp: 1
    case .measured: 2
    case .drain: 3
    }
  }
}

/// How a connection ended, as results and ledgers name it.
public enum ConnectionEnd: String, Sendable, Codable, CaseIterable {
  /// An error response named a notification.
  case rejected
  /// An error response of status 10.
  case shutdown
  case peerFin = "peer_fin"
  case peerRst = "peer_rst"
  case idle, lifetime, local

  // These occur only in ledgers.
  case handshakeFailed = "handshake_failed"
  case refused
  case frameTimeout = "frame_timeout"
  case tlsError = "tls_error"
  /// Failures that an answer would have proven accepted could not be put on the feedback list.
  case feedbackLost = "feedback_lost"
  /// The frame that had begun was too large for the memory that connections may take.
  case memory = "too_much_memory"
  /// Over HTTP/2: the provider broke a rule of the connection, or flooded it, and got a GOAWAY with an error.
  case protocolError = "protocol_error"

  /// The causes that a load counts.
  package static let ofLoads: [ConnectionEnd] = [.rejected, .shutdown, .peerFin, .peerRst, .idle, .lifetime, .local]
}

/// Why a batch was written when it was.
public enum FlushReason: String, Sendable, Codable, CaseIterable {
  /// The batch was as large as allowed.
  case full
  case linger
  /// Nothing of ours was unsent, so there was nothing to wait for.
  case idle
  /// The socket had drained.
  case drain
}
