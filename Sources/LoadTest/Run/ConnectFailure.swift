import BinaryProtocol
import Bytes
import NIOCore
import NIOPosix
import TLSTransport

/// Why a connection could not be made, or was lost.
struct ConnectFailure {
  /// The message of the system or the library.
  let reason: String
  /// Another attempt would end in the same way.
  let isPermanent: Bool

  /// - Parameter peer: who is connected to, in messages.
  init(_ error: any Error, peer: String = "the gateway") {
    reason = Self.reason(error, peer)
    isPermanent = Self.isPermanent(error)
  }

  private static func reason(_ error: any Error, _ peer: String) -> String {
    switch error {
    case let error as IOError: SystemError.text(error.errnoCode)
    case let error as NIOConnectionError:
      // A name may have several addresses; the last one speaks for all.
      error.connectionErrors.last.map { reason($0.error, peer) } ?? "no such host"
    case let error as TLSError where error.cause == .noTLS:
      "\(error): \(peer) does not seem to use TLS; if so, give --plain instead of --identity"
    case ChannelError.connectTimeout(let time): "no answer in \(time.nanoseconds / 1_000_000) ms"
    default: "\(error)"
    }
  }

  private static func isPermanent(_ error: any Error) -> Bool {
    switch error {
    case let error as TLSError: error.isPermanent
    // A name that has no address.
    case let error as NIOConnectionError: error.connectionErrors.isEmpty
    default: false
    }
  }
}

/// A failure that another attempt does not overcome; it ends the run unless the gateway was proven to be one before.
enum PermanentFailure: Sendable, Equatable {
  /// One side rejects the identity of the other.
  case refused(String)
  /// The peer is not a gateway.
  case foreign(ForeignAnswer)

  var reason: String {
    switch self {
    case .refused(let reason): reason
    case .foreign(let answer):
      answer.kind == .tlsAlert
        ? "the gateway answered with a TLS alert: it requires TLS; give --identity instead of --plain"
        : "the server is not a gateway: it sent \(answer) instead of an error response"
    }
  }
}
