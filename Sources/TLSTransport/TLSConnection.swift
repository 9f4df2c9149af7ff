import Bytes
import COpenSSL
import NIOCore
import TLSFoundation

/// One TLS connection that reads from memory and writes to memory; it knows nothing of sockets.
///
/// Ciphertext is passed to `take(_:)` and decrypted in place; the BIO is a view of two buffers, not another copy.
/// Output collects in `output`. Used on one thread at a time.
@safe final class TLSConnection {
  enum Progress {
    case done
    case needsInput
    /// The peer sent close_notify.
    case closed
    case failed(TLSError)
  }

  /// The most plaintext bytes of one record.
  static let recordLength = 16_384
  /// The most bytes that a suite adds to a record: header, explicit IV, MAC and padding.
  private static let recordOverhead = 128

  // Safe: the SSL is owned by this value, owns the BIO, and both point back without outliving it.
  private let ssl: OpaquePointer
  private let context: TLSContext
  private(set) var input = ByteBuffer()
  private(set) var output = ByteBuffer()
  private let sessions: SessionCache?
  private let sessionKey: SessionCache.Key
  private(set) var isClosedByPeer = false
  private(set) var hasSentClose = false

  /// - Parameters:
  ///   - serverName: the server name that a client sends (SNI) and, with `verifiesName`, verifies; an IP address is
  ///     verified, but not sent.
  ///   - sessions: where a client's sessions are kept and taken from, under `sessionKey`, this context and the name
  ///     that was verified.
  init(
    _ context: TLSContext, serverName: String? = nil, verifiesName: Bool = false, sessions: SessionCache? = nil,
    sessionKey: String = ""
  ) throws(TLSError) {
    guard let method = unsafe Self.method, let ssl = unsafe SSL_new(context.pointer) else {
      throw .fromOpenSSL(.configuration, "no TLS connection")
    }
    unsafe self.ssl = ssl
    self.context = context
    self.sessions = sessions
    self.sessionKey = SessionCache.Key(
      context: context.number, verifiedName: verifiesName ? serverName : nil, name: sessionKey)
    guard let bio = unsafe BIO_new(method) else { throw .fromOpenSSL(.configuration, "no memory for TLS") }
    unsafe BIO_set_data(bio, Unmanaged.passUnretained(self).toOpaque())
    unsafe BIO_set_init(bio, 1)
    unsafe SSL_set_bio(ssl, bio, bio)
    unsafe SSL_set_ex_data(ssl, 0, Unmanaged.passUnretained(self).toOpaque())
    // A record is then read with one call instead of two.
    unsafe SSL_set_read_ahead(ssl, 1)
    if context.side == .server {
      unsafe SSL_set_accept_state(ssl)
    } else {
      unsafe SSL_set_connect_state(ssl)
      if let serverName { try name(serverName, verifies: verifiesName) }
      if let session = sessions?.take(for: self.sessionKey) { unsafe SSL_set_session(ssl, session.pointer) }
    }
  }

  deinit {
    // A session whose connection was freed without a shutdown is not resumed.
    unsafe SSL_set_shutdown(ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN)
    unsafe SSL_free(ssl)
  }

  private func name(_ name: String, verifies: Bool) throws(TLSError) {
    let isAddress = (try? SocketAddress(ipAddress: name, port: 0)) != nil
    if !isAddress, unsafe apnscope_SSL_set_tlsext_host_name(ssl, name) != 1 {
      throw .fromOpenSSL(.configuration, "server name '\(name)'")
    }
    guard verifies else { return }
    let isSet =
      isAddress ? unsafe X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name) : unsafe SSL_set1_host(ssl, name)
    if isSet != 1 { throw .fromOpenSSL(.configuration, "server name '\(name)'") }
  }

  /// The connection a callback of OpenSSL is about.
  static func of(_ ssl: OpaquePointer?) -> TLSConnection? {
    guard let ssl = unsafe ssl, let pointer = unsafe SSL_get_ex_data(ssl, 0) else { return nil }
    return unsafe Unmanaged<TLSConnection>.fromOpaque(pointer).takeUnretainedValue()
  }

  /// Keeps a session for resumption; `false` without a cache.
  func keep(_ session: OpaquePointer) -> Bool {
    guard let sessions else { return false }
    unsafe sessions.add(TLSSession(owning: session), for: sessionKey)
    return true
  }

  // MARK: bytes

  /// Adds ciphertext from the peer. Nothing is copied when all that came before has been used, which is the rule.
  ///
  /// Data after close_notify is never read, so it is not kept.
  func take(_ ciphertext: ByteBuffer) {
    if isClosedByPeer { return }
    if input.readableBytes == 0 {
      input = ciphertext
    } else {
      input.writeImmutableBuffer(ciphertext)
    }
  }

  /// Hands over the output; `nil` if there is none.
  func takeOutput() -> ByteBuffer? {
    guard output.readableBytes > 0 else { return nil }
    defer { output = ByteBuffer() }
    return output
  }

  // MARK: steps

  func handshake() -> Progress {
    Self.forgetErrors()
    let result = unsafe SSL_do_handshake(ssl)
    guard result == 1 else { return problem(result, .handshake, "TLS handshake failed") }
    guard let pinned = context.pinnedKey else { return .done }
    let key = unsafe SSL_get0_peer_certificate(ssl).flatMap { unsafe Certificate.publicKeyDigest(of: $0) }
    return key == pinned ? .done : .failed(TLSError(.handshake, "the peer's public key is not the pinned one"))
  }

  /// The length of the next record, as far as it is known; its plaintext is shorter.
  var nextRecordLength: Int {
    input.getInteger(at: input.readerIndex + 3, as: UInt16.self).map(Int.init) ?? 0
  }

  /// Decrypts all available bytes into `plaintext`.
  ///
  /// - Parameter isOneRecord: decrypt the next record only; `done` then means that there may be another.
  func read(into plaintext: inout ByteBuffer, isOneRecord: Bool = false) -> Progress {
    while true {
      // A successful call may leave errors in the queue, which would change how the next result is interpreted.
      Self.forgetErrors()
      var result: Int32 = 0
      // The last call finds nothing: room for more would be a bigger buffer and a copy each time.
      _ = unsafe plaintext.writeWithUnsafeMutableBytes(minimumWritableBytes: 1) { memory in
        var count = 0
        unsafe result = SSL_read_ex(ssl, memory.baseAddress, memory.count, &count)
        return count
      }
      if result != 1 {
        if input.readableBytes == 0 { input = ByteBuffer() }
        return problem(result, .record, "TLS record")
      }
      // Another call would only say so.
      if input.readableBytes == 0, unsafe SSL_has_pending(ssl) == 0 {
        input = ByteBuffer()
        return .needsInput
      }
      if isOneRecord, unsafe SSL_pending(ssl) == 0 { return .done }
    }
  }

  /// Encrypts all readable bytes in full records, and advances the reader index.
  ///
  /// `needsInput` leaves the rest: a handshake message of the peer is there in part and comes first.
  func write(_ plaintext: inout ByteBuffer) -> Progress {
    var count = 0
    defer { plaintext.moveReaderIndex(forwardBy: count) }
    return write(plaintext.readableBytesSpan, &count)
  }

  /// Encrypts borrowed memory; `count` is the number of bytes that were accepted.
  func write(_ plaintext: RawSpan, _ count: inout Int) -> Progress {
    let records = 1 + plaintext.byteCount / Self.recordLength
    output.reserveCapacity(minimumWritableBytes: plaintext.byteCount + records * Self.recordOverhead)
    while count < plaintext.byteCount {
      Self.forgetErrors()
      let record = plaintext.extracting(count..<min(plaintext.byteCount, count + Self.recordLength))
      var (result, written) = (Int32(0), 0)
      // Safe: OpenSSL reads the record, which lives through the call.
      unsafe record.withUnsafeBytes { memory in
        unsafe result = SSL_write_ex(ssl, memory.baseAddress, memory.count, &written)
      }
      count += written
      if result != 1 { return problem(result, .record, "TLS record") }
    }
    return .done
  }

  /// Says that nothing more will be sent.
  func shutDown() {
    guard !hasSentClose else { return }
    hasSentClose = true
    Self.forgetErrors()
    _ = unsafe SSL_shutdown(ssl)
    // This cannot be reported while a handshake message of the peer is incomplete.
    Self.forgetErrors()
  }

  /// Clears OpenSSL's error queue, which affects the next result. Checks first whether it is empty, as usual, because
  /// clearing frees all sixteen entries.
  private static func forgetErrors() {
    if ERR_peek_error() != 0 { ERR_clear_error() }
  }

  private func problem(_ result: Int32, _ kind: TLSError.Kind, _ doing: String) -> Progress {
    switch unsafe SSL_get_error(ssl, result) {
    case SSL_ERROR_WANT_READ, SSL_ERROR_WANT_WRITE: return .needsInput
    case SSL_ERROR_ZERO_RETURN:
      isClosedByPeer = true
      return .closed
    default:
      var error = TLSError.fromOpenSSL(kind, doing)
      let verdict = unsafe SSL_get_verify_result(ssl)
      // Unrequested certificates have a verdict too.
      if kind == .handshake, unsafe SSL_get_verify_mode(ssl) != SSL_VERIFY_NONE, verdict != Int(X509_V_OK),
        let text = unsafe X509_verify_cert_error_string(verdict)
      {
        // Safe: a string constant of the library.
        error.message += " [\(unsafe String(cString: text))]"
      }
      return .failed(error)
    }
  }

  // MARK: negotiated parameters

  /// Meaningful after the handshake.
  var info: TLSConnectionInfo {
    var info = TLSConnectionInfo(
      version: TLSVersion(rawValue: UInt16(truncatingIfNeeded: unsafe SSL_version(ssl))),
      isResumed: unsafe SSL_session_reused(ssl) == 1)
    if let cipher = unsafe SSL_get_current_cipher(ssl), let name = unsafe SSL_CIPHER_get_name(cipher) {
      // Safe: a string constant of the library.
      info.cipherSuite = unsafe String(cString: name)
      info.suiteNumber = unsafe SSL_CIPHER_get_protocol_id(cipher)
    }
    if let name = unsafe SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name) {
      // Safe: NUL-terminated and owned by the connection.
      info.serverName = unsafe String(cString: name)
    }
    var (name, length): (UnsafePointer<UInt8>?, UInt32) = (nil, 0)
    unsafe SSL_get0_alpn_selected(ssl, &name, &length)
    // Safe: as long as it says, and owned by the connection.
    if let name = unsafe name, length > 0 {
      info.applicationProtocol = unsafe String(
        decoding: UnsafeBufferPointer(start: name, count: Int(length)), as: UTF8.self)
    }
    if let certificate = unsafe SSL_get0_peer_certificate(ssl) {
      unsafe info.peer = .init(
        subject: Certificate.subject(of: certificate), topic: Certificate.topic(of: certificate),
        topics: Certificate.topics(of: certificate))
    }
    return info
  }
}

extension TLSConnection {
  /// How OpenSSL reaches the two buffers. Made once; `nil` only without memory.
  ///
  /// Safe to share. The interleavings that were looked at:
  /// - Two loops make their first connections: a static is made once, and the other one waits. All functions are set
  ///   then, and none afterwards.
  /// - Two loops make or use BIOs of it: `BIO_new` and the calls of a BIO read the method; the BIO is a connection's own,
  ///   and so are the buffers that the functions reach through it.
  nonisolated(unsafe) fileprivate static let method: OpaquePointer? = {
    // Safe: never changed or freed after this.
    guard let method = unsafe BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "apnscope buffers") else {
      return nil
    }
    unsafe BIO_meth_set_read_ex(method) { bio, target, room, count in
      unsafe apnscope_BIO_clear_retry_flags(bio)
      guard let connection = unsafe TLSConnection.of(bio: bio), let target = unsafe target, let count = unsafe count
      else { return 0 }
      let taken = unsafe connection.copyInput(to: UnsafeMutableRawBufferPointer(start: target, count: room))
      unsafe count.pointee = taken
      if taken > 0 { return 1 }
      unsafe apnscope_BIO_set_retry_read(bio)
      return 0
    }
    unsafe BIO_meth_set_write_ex(method) { bio, source, length, count in
      unsafe apnscope_BIO_clear_retry_flags(bio)
      guard let connection = unsafe TLSConnection.of(bio: bio), let source = unsafe source, let count = unsafe count
      else { return 0 }
      unsafe connection.output.writeBytes(UnsafeRawBufferPointer(start: source, count: length))
      unsafe count.pointee = length
      return 1
    }
    unsafe BIO_meth_set_ctrl(method) { _, command, _, _ in command == BIO_CTRL_FLUSH ? 1 : 0 }
    return unsafe method
  }()

  private static func of(bio: OpaquePointer?) -> TLSConnection? {
    guard let data = unsafe BIO_get_data(bio) else { return nil }
    return unsafe Unmanaged<TLSConnection>.fromOpaque(data).takeUnretainedValue()
  }

  private func copyInput(to target: UnsafeMutableRawBufferPointer) -> Int {
    let count = min(target.count, input.readableBytes)
    guard count > 0 else { return 0 }
    unsafe input.readWithUnsafeReadableBytes { memory in
      unsafe target.copyMemory(from: UnsafeRawBufferPointer(rebasing: memory[..<count]))
      return count
    }
    return count
  }
}
