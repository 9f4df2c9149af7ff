import COpenSSL

/// The SSL_CTX of both sides. A resumed conversation runs in the contexts of the first: the server's holds the sessions
/// and the ticket keys.
@safe final class TLSContexts {
  // Safe because both are owned by this value and used by one conversation at a time.
  let client: OpaquePointer
  let server: OpaquePointer

  init(for conversation: TLSConversation) throws {
    guard let client = unsafe SSL_CTX_new(TLS_client_method()), let server = unsafe SSL_CTX_new(TLS_server_method())
    else { throw ConversationError("no context: \(openSSLProblem())") }
    unsafe self.client = client
    unsafe self.server = server
    unsafe setEither(client, conversation)
    unsafe setEither(server, conversation)
    unsafe try setSuite(conversation.suite, client, conversation.version)
    unsafe try setSuite(conversation.serverSuite ?? conversation.suite, server, conversation.version)
    setClient(conversation)
    setServer(conversation)
  }

  deinit {
    unsafe SSL_CTX_free(client)
    unsafe SSL_CTX_free(server)
  }

  private func setEither(_ context: OpaquePointer, _ conversation: TLSConversation) {
    unsafe SSL_CTX_set_security_level(context, 0)
    unsafe apnscope_SSL_CTX_set_min_proto_version(context, Int32(conversation.version.rawValue))
    unsafe apnscope_SSL_CTX_set_max_proto_version(context, Int32(conversation.version.rawValue))
    if !conversation.usesExtendedMasterSecret {
      unsafe SSL_CTX_set_options(context, apnscope_SSL_OP_NO_EXTENDED_MASTER_SECRET)
    }
    if !conversation.usesEncryptThenMAC {
      unsafe SSL_CTX_set_options(context, apnscope_SSL_OP_NO_ENCRYPT_THEN_MAC)
    }
    if !conversation.usesTickets { unsafe SSL_CTX_set_options(context, apnscope_SSL_OP_NO_TICKET) }
    if !conversation.usesMiddleboxCompatibility {
      unsafe SSL_CTX_clear_options(context, apnscope_SSL_OP_ENABLE_MIDDLEBOX_COMPAT)
    }
    if !conversation.insertsEmptyFragments {
      unsafe SSL_CTX_set_options(context, apnscope_SSL_OP_DONT_INSERT_EMPTY_FRAGMENTS)
    }
    if let block = conversation.paddingBlock { unsafe SSL_CTX_set_block_padding(context, block) }
  }

  private func setSuite(_ name: String?, _ context: OpaquePointer, _ version: TLSConversation.Version) throws {
    let isSet =
      if version == .tls13 {
        unsafe name == nil ? 1 : SSL_CTX_set_ciphersuites(context, name)
      } else {
        unsafe SSL_CTX_set_cipher_list(context, (name ?? "DEFAULT") + ":@SECLEVEL=0")
      }
    guard isSet == 1 else { throw ConversationError("suite \(name ?? "DEFAULT"): \(openSSLProblem())") }
  }

  /// Lets the server take the client's first protocol.
  private func setProtocols(_ names: [String]) {
    guard !names.isEmpty else { return }
    let list = names.flatMap { [UInt8($0.utf8.count)] + Array($0.utf8) }
    _ = unsafe SSL_CTX_set_alpn_protos(client, list, UInt32(list.count))
    unsafe SSL_CTX_set_alpn_select_cb(
      server,
      { _, chosen, length, offered, _, _ in
        // The list has a length before each name.
        guard let offered = unsafe offered else { return SSL_TLSEXT_ERR_NOACK }
        unsafe chosen?.pointee = unsafe offered + 1
        unsafe length?.pointee = unsafe offered.pointee
        return SSL_TLSEXT_ERR_OK
      }, nil)
  }

  private func setClient(_ conversation: TLSConversation) {
    setProtocols(conversation.applicationProtocols)
    unsafe SSL_CTX_set_verify(client, SSL_VERIFY_NONE, nil)
    unsafe SSL_CTX_set_keylog_callback(client) { ssl, line in
      guard let endpoint = unsafe TLSEndpoint.of(ssl), let line = unsafe line else { return }
      endpoint.keyLog.append(unsafe String(cString: line))
    }
    if conversation.clientAuthentication == .given { unsafe use(.client(conversation.clientKey), client) }
    if conversation.asksForAnotherKeyShare { unsafe apnscope_SSL_CTX_set1_groups_list(client, "X25519:P-256") }
    if conversation.preSharedKey != nil {
      unsafe SSL_CTX_set_psk_client_callback(client) { ssl, _, identity, identityRoom, key, keyRoom in
        guard let shared = unsafe TLSEndpoint.of(ssl)?.preSharedKey, let identity = unsafe identity,
          let key = unsafe key, shared.identity.utf8.count < identityRoom, shared.key.count <= keyRoom
        else { return 0 }
        for (offset, byte) in shared.identity.utf8.enumerated() { unsafe identity[offset] = CChar(bitPattern: byte) }
        unsafe identity[shared.identity.utf8.count] = 0
        for (offset, byte) in shared.key.enumerated() { unsafe key[offset] = byte }
        return UInt32(shared.key.count)
      }
    }
  }

  private func setServer(_ conversation: TLSConversation) {
    unsafe use(.server(conversation.serverKey), server)
    unsafe apnscope_SSL_CTX_set_dh_auto(server, 1)
    unsafe apnscope_SSL_CTX_set_session_cache_mode(server, Int(SSL_SESS_CACHE_SERVER))
    unsafe SSL_CTX_set_session_id_context(server, Array("apnscope".utf8), 8)
    if conversation.clientAuthentication != .none {
      unsafe SSL_CTX_set_verify(server, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nil)
      unsafe SSL_CTX_set_cert_verify_callback(server, { _, _ in 1 }, nil)
    }
    if conversation.allowsClientRenegotiation {
      unsafe SSL_CTX_set_options(server, apnscope_SSL_OP_ALLOW_CLIENT_RENEGOTIATION)
    }
    if conversation.asksForAnotherKeyShare { unsafe apnscope_SSL_CTX_set1_groups_list(server, "P-256") }
    if !conversation.earlyData.isEmpty { unsafe SSL_CTX_set_max_early_data(server, 16_384) }
    if conversation.preSharedKey != nil {
      unsafe SSL_CTX_set_psk_server_callback(server) { ssl, _, key, keyRoom in
        guard let shared = unsafe TLSEndpoint.of(ssl)?.preSharedKey, let key = unsafe key, shared.key.count <= keyRoom
        else { return 0 }
        for (offset, byte) in shared.key.enumerated() { unsafe key[offset] = byte }
        return UInt32(shared.key.count)
      }
    }
  }

  private func use(_ identity: TLSIdentity, _ context: OpaquePointer) {
    unsafe SSL_CTX_use_certificate(context, identity.certificate)
    unsafe SSL_CTX_use_PrivateKey(context, identity.key)
  }
}

/// A session to be resumed.
@safe final class TLSSession {
  // Safe because it is owned by this value.
  let session: OpaquePointer

  init(owning session: OpaquePointer) { unsafe self.session = session }

  deinit { unsafe SSL_SESSION_free(session) }
}
