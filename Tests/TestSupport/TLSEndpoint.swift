import COpenSSL

/// One end of a conversation: an SSL that reads from memory and writes to memory.
@safe final class TLSEndpoint {
  // Safe because the SSL is owned by this value, owns the two BIOs, and points back without outliving it.
  private let ssl: OpaquePointer
  private let input: OpaquePointer
  private let output: OpaquePointer

  let side: RecordedConversation.Side
  let preSharedKey: TLSConversation.PreSharedKey?
  var keyLog: [String] = []
  /// The application bytes that arrived.
  private(set) var received: [UInt8] = []
  private(set) var failure: String?
  /// Set while the server waits for early data.
  var readsEarlyData = false
  private(set) var earlyDataAccepted = false

  init(_ side: RecordedConversation.Side, _ context: OpaquePointer, _ conversation: TLSConversation) throws {
    guard let ssl = unsafe SSL_new(context), let input = unsafe BIO_new(BIO_s_mem()),
      let output = unsafe BIO_new(BIO_s_mem())
    else { throw ConversationError("no SSL: \(openSSLProblem())") }
    unsafe self.ssl = ssl
    unsafe self.input = input
    unsafe self.output = output
    self.side = side
    self.preSharedKey = conversation.preSharedKey
    unsafe SSL_set_bio(ssl, input, output)
    unsafe SSL_set_ex_data(ssl, 0, Unmanaged.passUnretained(self).toOpaque())
    if let length = conversation.maxFragment { unsafe apnscope_SSL_set_max_send_fragment(ssl, length) }
    if side == .client {
      unsafe SSL_set_connect_state(ssl)
      if let name = conversation.serverName { unsafe apnscope_SSL_set_tlsext_host_name(ssl, name) }
    } else {
      unsafe SSL_set_accept_state(ssl)
    }
  }

  deinit {
    // A session whose connection was freed without a shutdown is not resumed.
    unsafe SSL_set_shutdown(ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN)
    unsafe SSL_free(ssl)
  }

  /// The endpoint a callback of OpenSSL is about.
  static func of(_ ssl: OpaquePointer?) -> TLSEndpoint? {
    guard let ssl = unsafe ssl, let pointer = unsafe SSL_get_ex_data(ssl, 0) else { return nil }
    return unsafe Unmanaged<TLSEndpoint>.fromOpaque(pointer).takeUnretainedValue()
  }

  // MARK: the wire

  func take(_ bytes: [UInt8]) {
    _ = unsafe BIO_write(input, bytes, Int32(bytes.count))
  }

  /// What is to be sent; empty if nothing.
  func flush() -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: unsafe BIO_ctrl_pending(output))
    if !bytes.isEmpty { _ = unsafe BIO_read(output, &bytes, Int32(bytes.count)) }
    return bytes
  }

  // MARK: the application

  /// Goes on with a handshake, and reads all that arrived.
  func read() {
    guard failure == nil else { return }
    if readsEarlyData, !readEarlyData() { return }
    // After early data `SSL_read` alone does not go on with the handshake.
    if !isEstablished {
      let result = unsafe SSL_do_handshake(ssl)
      if result <= 0 {
        note(result)
        return
      }
    }
    var buffer = [UInt8](repeating: 0, count: 1 << 14)
    while true {
      let count = unsafe SSL_read(ssl, &buffer, Int32(buffer.count))
      if count <= 0 {
        note(count)
        return
      }
      received += buffer[..<Int(count)]
    }
  }

  /// True when the early data has ended.
  private func readEarlyData() -> Bool {
    var buffer = [UInt8](repeating: 0, count: 1 << 14)
    while true {
      var count = 0
      switch unsafe SSL_read_early_data(ssl, &buffer, buffer.count, &count) {
      case SSL_READ_EARLY_DATA_SUCCESS:
        received += buffer[..<count]
        earlyDataAccepted = true
      case SSL_READ_EARLY_DATA_FINISH:
        readsEarlyData = false
        return true
      default:
        note(0)
        return false
      }
    }
  }

  func write(_ bytes: [UInt8]) {
    guard failure == nil else { return }
    note(unsafe SSL_write(ssl, bytes, Int32(bytes.count)))
  }

  func writeEarlyData(_ bytes: [UInt8]) {
    var written = 0
    note(unsafe SSL_write_early_data(ssl, bytes, bytes.count, &written))
  }

  func updateKey(asksPeer: Bool) {
    guard failure == nil else { return }
    unsafe SSL_key_update(ssl, asksPeer ? SSL_KEY_UPDATE_REQUESTED : SSL_KEY_UPDATE_NOT_REQUESTED)
    note(unsafe SSL_do_handshake(ssl))
  }

  func renegotiate(abbreviated: Bool) {
    guard failure == nil else { return }
    guard unsafe (abbreviated ? SSL_renegotiate_abbreviated(ssl) : SSL_renegotiate(ssl)) == 1 else {
      failure = openSSLProblem()
      return
    }
    note(unsafe SSL_do_handshake(ssl))
  }

  func close() {
    guard failure == nil else { return }
    let result = unsafe SSL_shutdown(ssl)
    if result < 0 { note(result) }
  }

  private func note(_ result: Int32) {
    guard result <= 0, failure == nil else { return }
    let code = unsafe SSL_get_error(ssl, result)
    if code == SSL_ERROR_SSL || code == SSL_ERROR_SYSCALL { failure = openSSLProblem() }
    ERR_clear_error()
  }

  // MARK: what was negotiated

  var isEstablished: Bool { unsafe SSL_is_init_finished(ssl) == 1 }
  var isResumed: Bool { unsafe SSL_session_reused(ssl) == 1 }
  var version: UInt16 { UInt16(truncatingIfNeeded: unsafe SSL_version(ssl)) }
  var suite: (number: UInt16, name: String) {
    guard let cipher = unsafe SSL_get_current_cipher(ssl), let name = unsafe SSL_CIPHER_get_name(cipher) else {
      return (0, "")
    }
    return (unsafe SSL_CIPHER_get_protocol_id(cipher), unsafe String(cString: name))
  }

  func session() -> TLSSession? {
    guard let session = unsafe SSL_get1_session(ssl) else { return nil }
    return unsafe TLSSession(owning: session)
  }

  func resume(_ session: TLSSession) { unsafe SSL_set_session(ssl, session.session) }
}
