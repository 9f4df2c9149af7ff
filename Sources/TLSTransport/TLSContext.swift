import COpenSSL
import Synchronization
import TLSFoundation

/// The settings, certificates and session keys that connections of one side share (OpenSSL's `SSL_CTX`).
///
/// Created once, used by all event loops, and never changed.
///
/// `@unchecked Sendable` is valid because of what ssl(7) asks for: an SSL_CTX is not changed after it was used to make an
/// SSL; every `SSL_CTX_set…` here is called by `init`. The interleavings that were looked at:
/// - Two loops make connections (`SSL_new`), which take references and copy settings: atomics, and the context's lock.
/// - Two handshakes keep, find or remove sessions, or encrypt tickets: the context's cache is under its lock, and the
///   ticket keys are made in `SSL_CTX_new`. What a client gets goes to `SessionCache`, which has a lock.
/// - Two handshakes verify certificates against the same store: `X509_STORE` has a lock.
/// - Two handshakes log secrets: the callback reads `keyLog`, a constant; each line is one write in append mode.
/// - One loop's last connection ends while another's begins: each `TLSConnection` keeps this object, so `SSL_CTX_free`
///   comes after the last of them.
@safe public final class TLSContext: @unchecked Sendable {
  /// Owned by this object.
  let pointer: OpaquePointer
  /// The side for which the context is.
  public let side: TLSConfiguration.Side
  /// Distinguishes contexts even if one reuses the address of a freed one.
  let number = TLSContext.made.wrappingAdd(1, ordering: .relaxed).newValue
  private static let made = Atomic<UInt64>(0)
  /// The digest of the only public key that a peer may have.
  let pinnedKey: [UInt8]?
  private let keyLog: KeyLogFile?
  private let applicationProtocols: [[UInt8]]

  /// Loads the certificates, and checks the settings.
  ///
  /// - Throws: a `TLSError` of kind `configuration` for versions and suites, of kind `credentials` or `file` for
  ///   certificates and lists.
  public init(_ configuration: TLSConfiguration) throws(TLSError) {
    ERR_clear_error()
    defer { ERR_clear_error() }
    let method = unsafe configuration.side == .server ? TLS_server_method() : TLS_client_method()
    guard let context = unsafe SSL_CTX_new(method) else { throw .fromOpenSSL(.configuration, "no TLS context") }
    unsafe pointer = context
    side = configuration.side
    (keyLog, pinnedKey) = (configuration.keyLog, configuration.pinnedKey)
    applicationProtocols = configuration.applicationProtocols.map { Array($0.utf8) }
    try setVersions(configuration)
    try setCertificates(configuration)
    setSessions(configuration)
    setApplicationProtocols()
    // A write of 16 KB is one record; there are no partial writes, since the output is memory. Idle connections release
    // their buffers, 34 KB each. The chain that is sent is the identity's own: otherwise OpenSSL would search for one,
    // and verify it, in every handshake.
    unsafe apnscope_SSL_CTX_set_mode(
      pointer,
      Int(
        SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_AUTO_RETRY | SSL_MODE_NO_AUTO_CHAIN))
    unsafe SSL_CTX_set_options(
      pointer,
      apnscope_SSL_OP_NO_RENEGOTIATION | apnscope_SSL_OP_NO_COMPRESSION
        | apnscope_SSL_OP_CIPHER_SERVER_PREFERENCE)
    if keyLog != nil {
      // Safe: the context outlives its connections' callbacks, because every connection keeps its TLSContext.
      unsafe SSL_CTX_set_ex_data(pointer, 0, Unmanaged.passUnretained(self).toOpaque())
      unsafe SSL_CTX_set_keylog_callback(pointer) { ssl, line in
        guard let ssl = unsafe ssl, let line = unsafe line,
          let data = unsafe SSL_CTX_get_ex_data(SSL_get_SSL_CTX(ssl), 0)
        else { return }
        let context = unsafe Unmanaged<TLSContext>.fromOpaque(data).takeUnretainedValue()
        context.keyLog?.append(unsafe String(cString: line))
      }
    }
  }

  deinit { unsafe SSL_CTX_free(pointer) }

  /// Chooses the first protocol of the client that is one of the server's.
  private func setApplicationProtocols() {
    guard side == .server, !applicationProtocols.isEmpty else { return }
    // Safe: the context outlives its connections' callbacks, because every connection keeps its TLSContext.
    unsafe SSL_CTX_set_alpn_select_cb(
      pointer,
      { _, chosen, length, offered, count, argument in
        guard let offered = unsafe offered, let argument = unsafe argument else { return SSL_TLSEXT_ERR_NOACK }
        let context = unsafe Unmanaged<TLSContext>.fromOpaque(argument).takeUnretainedValue()
        // Safe: OpenSSL has checked that the list is `count` bytes of names, each behind its length.
        let list = unsafe UnsafeBufferPointer(start: offered, count: Int(count))
        var place = 0
        while place < list.count {
          let name = place + 1..<min(list.count, place + 1 + Int(unsafe list[place]))
          if context.applicationProtocols.contains(where: { unsafe $0.elementsEqual(list[name]) }) {
            unsafe chosen?.pointee = offered + name.lowerBound
            unsafe length?.pointee = UInt8(name.count)
            return SSL_TLSEXT_ERR_OK
          }
          place = name.upperBound
        }
        return SSL_TLSEXT_ERR_ALERT_FATAL
      }, Unmanaged.passUnretained(self).toOpaque())
  }

  /// The OpenSSL that is in use: "OpenSSL 3.0.22 25 Aug 2026".
  package static var libraryVersion: String {
    // Safe: a string constant of the library.
    unsafe String(cString: OpenSSL_version(OPENSSL_VERSION))
  }

  /// The reason why secrets could not be written to the key log; `nil` as long as all could.
  public var keyLogFailure: String? { keyLog?.failure }

  private func setVersions(_ configuration: TLSConfiguration) throws(TLSError) {
    let (low, high) = (configuration.versions.lowerBound, configuration.versions.upperBound)
    guard unsafe apnscope_SSL_CTX_set_min_proto_version(pointer, Int32(low.rawValue)) == 1,
      unsafe apnscope_SSL_CTX_set_max_proto_version(pointer, Int32(high.rawValue)) == 1
    else { throw .fromOpenSSL(.configuration, "OpenSSL does not take \(low) to \(high)") }
    // Debian's level 2 shuts out TLS 1.0 and 1.1 and the hashes they sign with.
    let reachesBack = low < .tls12
    if reachesBack { unsafe SSL_CTX_set_security_level(pointer, 0) }
    if configuration.cipherList != nil || reachesBack {
      let list = configuration.cipherList ?? "DEFAULT"
      guard unsafe SSL_CTX_set_cipher_list(pointer, list + (reachesBack ? ":@SECLEVEL=0" : "")) == 1 else {
        throw .fromOpenSSL(.configuration, "cipher list '\(list)'")
      }
    }
    if let suites = configuration.cipherSuites, unsafe SSL_CTX_set_ciphersuites(pointer, suites) != 1 {
      throw .fromOpenSSL(.configuration, "TLS 1.3 cipher suites '\(suites)'")
    }
    if configuration.side == .server { unsafe apnscope_SSL_CTX_set_dh_auto(pointer, 1) }
  }

  private func setCertificates(_ configuration: TLSConfiguration) throws(TLSError) {
    if let identity = configuration.identity {
      try use(identity)
    } else if side == .server {
      throw TLSError(.configuration, "a server needs a certificate and its key")
    }
    if let path = configuration.authorityFile {
      guard unsafe SSL_CTX_load_verify_file(pointer, path) == 1 else {
        throw .fromOpenSSL(.credentials, "\(path): no trusted certificates")
      }
      if side == .server {
        // Clients choose their certificate by the names of the authorities that the server trusts.
        unsafe SSL_CTX_set_client_CA_list(pointer, SSL_load_client_CA_file(path))
      }
    } else if side == .client {
      if configuration.peerCertificate != .notAsked { _ = unsafe SSL_CTX_set_default_verify_paths(pointer) }
    } else if configuration.peerCertificate == .required {
      throw TLSError(.configuration, "a server that requires certificates needs a file with the authorities it trusts")
    }
    if let path = configuration.revocationListFile { try loadRevocationLists(path) }
    let mode: Int32 =
      switch configuration.peerCertificate {
      case .notAsked: SSL_VERIFY_NONE
      case .optional: SSL_VERIFY_PEER
      case .required: SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT
      }
    unsafe SSL_CTX_set_verify(pointer, mode, nil)
  }

  private func use(_ identity: Identity) throws(TLSError) {
    guard unsafe SSL_CTX_use_certificate(pointer, identity.certificate) == 1,
      unsafe SSL_CTX_use_PrivateKey(pointer, identity.key) == 1
    else { throw .fromOpenSSL(.credentials, "the certificate of \(identity.subject) cannot be used") }
    if let chain = unsafe identity.chain, unsafe apnscope_SSL_CTX_set1_chain(pointer, chain) != 1 {
      throw .fromOpenSSL(.credentials, "the chain of \(identity.subject) cannot be used")
    }
  }

  private func loadRevocationLists(_ path: String) throws(TLSError) {
    let store = unsafe SSL_CTX_get_cert_store(pointer)
    let lookup = unsafe X509_STORE_add_lookup(store, X509_LOOKUP_file())
    guard unsafe X509_load_crl_file(lookup, path, X509_FILETYPE_PEM) > 0 else {
      throw .fromOpenSSL(.credentials, "\(path): no revocation list")
    }
    unsafe X509_STORE_set_flags(store, UInt(X509_V_FLAG_CRL_CHECK))
  }

  private func setSessions(_ configuration: TLSConfiguration) {
    if !configuration.usesTickets || !configuration.resumesSessions {
      unsafe SSL_CTX_set_options(pointer, apnscope_SSL_OP_NO_TICKET)
    }
    if side == .server {
      unsafe apnscope_SSL_CTX_accept_server_names(pointer)
      unsafe SSL_CTX_set_num_tickets(pointer, configuration.resumesSessions ? max(0, configuration.ticketCount) : 0)
      // Without a session id context OpenSSL refuses to resume sessions of clients with certificates.
      unsafe SSL_CTX_set_session_id_context(pointer, Array("apnscope".utf8), 8)
      // OpenSSL 3.0 keeps one session less than the limit, and any number for 0.
      unsafe apnscope_SSL_CTX_sess_set_cache_size(pointer, max(1, configuration.sessionCacheSize) + 1)
      unsafe apnscope_SSL_CTX_set_session_cache_mode(
        pointer, Int(configuration.resumesSessions ? SSL_SESS_CACHE_SERVER : SSL_SESS_CACHE_OFF))
    } else if configuration.resumesSessions {
      unsafe apnscope_SSL_CTX_set_session_cache_mode(
        pointer, Int(SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL))
      unsafe SSL_CTX_sess_set_new_cb(pointer) { ssl, session in
        guard let connection = unsafe TLSConnection.of(ssl), let session = unsafe session else { return 0 }
        // 1: the reference is ours now.
        return unsafe connection.keep(session) ? 1 : 0
      }
    } else {
      unsafe apnscope_SSL_CTX_set_session_cache_mode(pointer, Int(SSL_SESS_CACHE_OFF))
    }
  }
}
