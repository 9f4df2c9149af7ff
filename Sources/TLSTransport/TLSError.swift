import Bytes
import COpenSSL

/// A TLS failure, as one sentence with all of OpenSSL's error texts.
///
/// Two errors are equal if their kinds are; the message is for people.
public struct TLSError: Error, Sendable, Equatable, CustomStringConvertible {
  /// The kinds of failure.
  public enum Kind: Sendable, Equatable {
    /// A file cannot be read or written.
    case file
    /// A certificate, key, revocation list or PKCS#12 file is invalid.
    case credentials
    /// A setting OpenSSL does not take: a version, a cipher suite.
    case configuration
    /// The handshake failed: no common suite, an untrusted certificate, a peer with another protocol.
    case handshake
    /// The peer closed the connection, or sent something other than TLS, before the handshake was complete.
    case closedDuringHandshake
    /// A record could not be read or written after the handshake.
    case record
  }

  /// The side that refused the other, if known.
  public enum Cause: Sendable, Equatable {
    /// The peer's certificate is not trusted, or not for its name.
    case untrustedPeer
    /// The peer sent this alert.
    case alert(UInt8)
    /// The peer's first bytes are not a TLS record.
    case noTLS
  }

  /// The kind of failure.
  public var kind: Kind
  /// A sentence for people.
  public var message: String
  /// The side that refused the other, if known.
  public var cause: Cause?

  package init(_ kind: Kind, _ message: String, cause: Cause? = nil) {
    self.kind = kind
    self.message = message
    self.cause = cause
  }

  /// Whether another attempt with the same certificates would end in the same way: one of the certificates is refused,
  /// or the peer does not use TLS.
  public var isPermanent: Bool {
    switch cause {
    case .untrustedPeer, .noTLS: true
    // bad_certificate to certificate_unknown, unknown_ca, access_denied, certificate_required.
    case .alert(let number): (42...46).contains(number) || [48, 49, 116].contains(number)
    case nil: false
    }
  }

  /// Whether both errors have the same kind; messages are ignored.
  public static func == (a: TLSError, b: TLSError) -> Bool { a.kind == b.kind }

  public var description: String { message }

  /// An error with everything in OpenSSL's queue, which is emptied.
  static func fromOpenSSL(_ kind: Kind, _ doing: String) -> TLSError {
    let (texts, cause) = takeOpenSSLErrors()
    return TLSError(kind, texts.isEmpty ? doing : "\(doing): \(texts.joined(separator: "; "))", cause: cause)
  }
}

/// The texts of OpenSSL's error queue of this thread, the oldest first, and the first cause found in them; the queue is
/// empty afterwards.
private func takeOpenSSLErrors() -> (texts: [String], cause: TLSError.Cause?) {
  var texts: [String] = []
  var cause: TLSError.Cause?
  while true {
    var data: UnsafePointer<CChar>?
    var flags: Int32 = 0
    let code = unsafe ERR_get_error_all(nil, nil, nil, &data, &flags)
    guard code != 0 else { return (texts, cause) }
    cause = cause ?? TLSError.Cause(openSSL: code)
    // Safe: both are NUL-terminated strings that live at least until the next call of the library.
    var text = unsafe ERR_reason_error_string(code).map { unsafe String(cString: $0) } ?? otherText(code)
    if flags & ERR_TXT_STRING != 0, let data = unsafe data {
      let detail = unsafe String(cString: data)
      if !detail.isEmpty { text += " (\(detail))" }
    }
    if texts.last != text { texts.append(text) }
  }
}

extension TLSError.Cause {
  /// - Parameter code: as OpenSSL's error queue has it.
  fileprivate init?(openSSL code: UInt) {
    guard ERR_GET_LIB(code) == ERR_LIB_SSL else { return nil }
    let reason = ERR_GET_REASON(code)
    let alertOffset = SSL_AD_REASON_OFFSET
    switch reason {
    case SSL_R_CERTIFICATE_VERIFY_FAILED: self = .untrustedPeer
    case SSL_R_WRONG_VERSION_NUMBER, SSL_R_HTTP_REQUEST, SSL_R_HTTPS_PROXY_REQUEST: self = .noTLS
    case alertOffset...alertOffset + 255: self = .alert(UInt8(truncatingIfNeeded: reason - alertOffset))
    default: return nil
    }
  }
}

/// OpenSSL has no text for the system's errors.
private func otherText(_ code: UInt) -> String {
  let systemFlag = UInt(1) << 31
  return code & systemFlag != 0
    ? SystemError.text(Int32(truncatingIfNeeded: code & ~systemFlag)) : "OpenSSL error \(code)"
}
