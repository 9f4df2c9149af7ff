/// A TLS conversation as a wire saw it, with what it takes to read it and what was really said.
public struct RecordedConversation: Sendable {
  public enum Side: String, Sendable, CaseIterable {
    case client, server

    public var peer: Side { self == .client ? .server : .client }
  }

  /// What one side sent in one flush; any number of records, all of them whole.
  public struct Step: Sendable, Equatable {
    public var side: Side
    public var bytes: [UInt8]

    public init(side: Side, bytes: [UInt8]) {
      self.side = side
      self.bytes = bytes
    }
  }

  /// The flushes of both sides in the order they were sent.
  public var steps: [Step] = []
  /// The lines of an NSS key log, in the order they were logged, without line ends.
  public var keyLog: [String] = []
  /// The application bytes the server received: early data if it was accepted, not if it was passed over.
  public var clientPlaintext: [UInt8] = []
  /// The application bytes the client received.
  public var serverPlaintext: [UInt8] = []
  /// The negotiated version as it stands on the wire, 0x0303 for TLS 1.2; 0 when nothing was negotiated.
  public var version: UInt16 = 0
  /// The negotiated suite's number, 0 when nothing was negotiated.
  public var suite: UInt16 = 0
  /// OpenSSL's name of the suite, `ECDHE-RSA-AES128-GCM-SHA256`.
  public var suiteName = ""
  public var isResumed = false
  /// Whether the server took the early data; nil when the client sent none.
  public var isEarlyDataAccepted: Bool?
  /// Why the conversation broke, by the side that noticed first: `server: no shared cipher`.
  public var failure: String?

  public init() {}

  /// The key log as a file's text.
  public var keyLogText: String { keyLog.map { $0 + "\n" }.joined() }

  /// The application bytes `side` sent.
  public func plaintext(of side: Side) -> [UInt8] { side == .client ? clientPlaintext : serverPlaintext }

  /// All bytes `side` sent, one flush after the other.
  public func stream(of side: Side) -> [UInt8] { steps.filter { $0.side == side }.flatMap(\.bytes) }
}

/// A conversation that could not be made as it was asked for: the test is wrong, or OpenSSL does not do this.
public struct ConversationError: Error, CustomStringConvertible {
  public var description: String

  init(_ description: String) { self.description = description }
}
