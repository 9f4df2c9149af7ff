import Bytes
import COpenSSL

/// What went wrong with TLS, in one sentence that carries everything OpenSSL said.
///
/// Two errors are equal when their kinds are; the message is for people.
public struct TLSError: Error, Sendable, Equatable, CustomStringConvertible {
  public enum Kind: Sendable, Equatable {
    /// A file cannot be read or written.
    case file
    /// A certificate, key, revocation list or PKCS#12 file is not what it should be.
    case credentials
    /// A setting OpenSSL does not take: a version, a cipher suite.
    case configuration
    /// The handshake failed: no common suite, a certificate that is not trusted, a peer that speaks something else.
    case handshake
    /// The peer closed the connection, or sent something that is no TLS, before the handshake was over.
    case closedDuringHandshake
    /// A record could not be read or written after the handshake.
    case record
  }

  public var kind: Kind
  public var message: String

  public init(_ kind: Kind, _ message: String) {
    self.kind = kind
    self.message = message
  }

  public static func == (a: TLSError, b: TLSError) -> Bool { a.kind == b.kind }

  public var description: String { message }

  /// An error with everything that stands in OpenSSL's queue, which is emptied.
  static func fromOpenSSL(_ kind: Kind, _ doing: String) -> TLSError {
    let texts = takeOpenSSLErrors()
    return TLSError(kind, texts.isEmpty ? doing : "\(doing): \(texts.joined(separator: "; "))")
  }
}

/// The texts of OpenSSL's error queue of this thread, the oldest first; the queue is empty afterwards.
func takeOpenSSLErrors() -> [String] {
  var texts: [String] = []
  while true {
    var data: UnsafePointer<CChar>?
    var flags: Int32 = 0
    let code = unsafe ERR_get_error_all(nil, nil, nil, &data, &flags)
    guard code != 0 else { return texts }
    // Safe: both are NUL-terminated strings that live at least until the next call of the library.
    var text = unsafe ERR_reason_error_string(code).map { unsafe String(cString: $0) } ?? otherText(code)
    if flags & ERR_TXT_STRING != 0, let data = unsafe data {
      let detail = unsafe String(cString: data)
      if !detail.isEmpty { text += " (\(detail))" }
    }
    if texts.last != text { texts.append(text) }
  }
}

/// OpenSSL has no text for the system's errors.
private func otherText(_ code: UInt) -> String {
  let systemFlag = UInt(1) << 31
  return code & systemFlag != 0
    ? SystemError.text(Int32(truncatingIfNeeded: code & ~systemFlag)) : "OpenSSL error \(code)"
}
