/// Runs one conversation and writes down what is sent.
struct TLSExchange {
  private let conversation: TLSConversation
  private let client: TLSEndpoint
  private let server: TLSEndpoint
  private var recorded = RecordedConversation()
  private var said: [RecordedConversation.Side: [UInt8]] = [:]

  init(_ conversation: TLSConversation, in contexts: TLSContexts, resuming session: TLSSession?) throws {
    self.conversation = conversation
    client = unsafe try TLSEndpoint(.client, contexts.client, conversation)
    server = unsafe try TLSEndpoint(.server, contexts.server, conversation)
    if let session { client.resume(session) }
  }

  /// Makes the conversation; the session is the client's.
  consuming func run() throws -> (recorded: RecordedConversation, session: TLSSession?) {
    if !conversation.earlyData.isEmpty {
      server.readsEarlyData = !conversation.rejectsEarlyData
      client.writeEarlyData(conversation.earlyData)
    }
    settle()
    if recorded.failure == nil, !client.isEstablished || !server.isEstablished {
      throw ConversationError("the handshake does not end")
    }
    (recorded.suite, recorded.suiteName) = client.suite
    recorded.version = client.isEstablished ? client.version : 0
    recorded.isResumed = client.isResumed
    if !conversation.earlyData.isEmpty {
      recorded.isEarlyDataAccepted = server.earlyDataAccepted
      if server.earlyDataAccepted { said[.client] = conversation.earlyData }
    }
    for action in conversation.script where recorded.failure == nil { act(action) }
    recorded.keyLog = client.keyLog
    recorded.clientPlaintext = server.received
    recorded.serverPlaintext = client.received
    try check()
    return (recorded, client.session())
  }

  private func check() throws {
    if let failure = recorded.failure {
      if !conversation.mayFail { throw ConversationError(failure) }
      return
    }
    for side in RecordedConversation.Side.allCases where recorded.plaintext(of: side) != said[side, default: []] {
      throw ConversationError("what the \(side) said did not arrive")
    }
  }

  private mutating func act(_ action: TLSConversation.Action) {
    switch action {
    case .write(let side, let bytes):
      endpoint(side).write(bytes)
      said[side, default: []] += bytes
    case .writeTampered(let side, let bytes):
      endpoint(side).write(bytes)
      var flush = endpoint(side).flush()
      if !flush.isEmpty { flush[flush.count - 1] ^= 1 }
      deliver(flush, from: side)
    case .renegotiate(let side, let abbreviated): endpoint(side).renegotiate(abbreviated: abbreviated)
    case .updateKey(let side, let asksPeer): endpoint(side).updateKey(asksPeer: asksPeer)
    case .close(let side): endpoint(side).close()
    }
    settle()
  }

  /// Carries bytes to and fro until neither side has any to send.
  private mutating func settle() {
    var isQuiet = false
    while !isQuiet {
      isQuiet = true
      for side in RecordedConversation.Side.allCases {
        endpoint(side).read()
        if recorded.failure == nil, let failure = endpoint(side).failure { recorded.failure = "\(side): \(failure)" }
        let bytes = endpoint(side).flush()
        if !bytes.isEmpty {
          isQuiet = false
          deliver(bytes, from: side)
        }
      }
    }
  }

  private mutating func deliver(_ bytes: [UInt8], from side: RecordedConversation.Side) {
    recorded.steps.append(RecordedConversation.Step(side: side, bytes: bytes))
    endpoint(side.peer).take(bytes)
  }

  private func endpoint(_ side: RecordedConversation.Side) -> TLSEndpoint { side == .client ? client : server }
}
