import PushModel

/// Totals over everything that was read.
public struct SummaryRecord: Sendable {
  public var packets = 0
  public var connections = 0
  public var notifications = 0
  public var errorResponses = 0
  public var feedbackTuples = 0
  /// Final answers over HTTP/2.
  public var responses = 0
  /// Messages of the device channel and of local push.
  public var messages = 0
  /// The number of gap records.
  public var gaps = 0
  /// The number of malformed records, and of notifications whose items do not fit the frame.
  public var malformed = 0
  /// TLS connections of which nothing was decrypted.
  public var undecryptedConnections = 0
  /// Packets that the capture lost.
  public var droppedPackets = 0
  /// Packets of unread protocols that may carry TCP.
  public var unreadPackets = 0
  /// The protocols of these packets, as text; if no connection is read, also those of the other packets.
  public var unread: [String] = []
  /// Connections that could not be decrypted, wholly or in part. Not a field of the record; each connection's record
  /// has the reason.
  public var partlyClosedConnections = 0
  /// Connections to a feedback service that could be read, also those with an empty list. Not a field of the record.
  public var readFeedbackConnections = 0
  /// Connections with requests of the provider API. Not a field of the record.
  public var readProviderConnections = 0
  /// Connections that have ended. Not a field of the record, nor are the following properties.
  public var endedConnections = 0
  /// Error responses by rejection.
  public var errorsByRejection: [Rejection: Int] = [:]
  /// The fates decided so far; on open connections they may still change.
  public var settled = FateCounts()

  public init() {}

  /// Whether bytes were missing, malformed or could not be decrypted.
  public var isDamaged: Bool { droppedPackets > 0 || gaps > 0 || malformed > 0 || partlyClosedConnections > 0 }

  /// Whether APNs traffic, or messages to devices, were read. Otherwise nothing is known about notifications.
  public var hasRead: Bool {
    notifications > 0 || errorResponses > 0 || feedbackTuples > 0 || messages > 0 || readFeedbackConnections > 0
      || readProviderConnections > 0
  }

  package mutating func noteEnd(of connection: ConnectionRecord) {
    endedConnections += 1
    if let tls = connection.tls {
      if !tls.isDecrypted { undecryptedConnections += 1 }
      if !tls.isWhole { partlyClosedConnections += 1 }
    }
    if connection.http2 != nil, connection.service != .other { readProviderConnections += 1 }
    // A service that sent a FIN and no bytes has an empty list; one that did not answer has none.
    let isEmptyList = connection.end == .serverFIN && connection.serverBytes == 0 && connection.missingBytes == 0
    if connection.service == .feedback, connection.otherProtocol == nil, connection.tls?.isDecrypted != false,
      connection.feedbackTuples > 0 || isEmptyList
    {
      readFeedbackConnections += 1
    }
  }
}
