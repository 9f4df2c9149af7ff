import Measurement
import PacketCapture
import PushModel
import TLSDecryption

/// A connection as a whole, when it has ended.
public struct ConnectionRecord: Sendable {
  /// How a captured connection ended.
  public typealias End = CapturedEnd

  /// The connection's number, from 1 in the order of first packets.
  public var connection: Int
  /// The number of the file with its first packet; `nil` if there is only one file.
  public var file: Int?
  /// A key that is the same in every shard of a recording; `nil` if the whole recording is read.
  public var flow: String?
  /// The recognised service.
  public var service: Service
  /// The other protocol that was recognised, on any port; `nil`: none.
  public var otherProtocol: OtherProtocol?
  /// The preamble before the first record or the TLS handshake; `nil`: none.
  public var preamble: Preamble?
  /// Bytes of both ends that it took, which are in no other count. No field of the record.
  package var preambleBytes = (client: 0, server: 0)
  /// Whether one of the two ports is a gateway's or feedback service's. Not a field of the record.
  public var isOnKnownPort = false
  /// How it began and ended, packet by packet. No field of the record.
  package var outline = ConnectionOutline()
  /// The parts of the connection that the recording does not show.
  package var notCaptured = NotCaptured()
  /// The client's address and port; `nil` for raw dumps.
  public var client: Endpoint?
  /// The server's address and port; `nil` for raw dumps.
  public var server: Endpoint?
  /// The time of the first packet.
  public var opened: Timestamp
  /// The time of the end; `.none` while no end was seen.
  public var closed: Timestamp
  /// How the connection ended, by the first FIN or RST.
  public var end: End
  /// The connection's TLS; `nil`: none.
  public var tls: TLSSummary?
  /// Application bytes of the client in the capture; TLS bytes if the connection is not decrypted.
  public var clientBytes: Int
  /// Application bytes of the server in the capture, likewise.
  public var serverBytes: Int
  /// Bytes that were sent and are not in the capture, in both directions; under TLS, TLS bytes.
  public var missingBytes: Int
  /// Notifications that were read.
  public var notifications: Int
  /// Error responses that were read.
  public var errorResponses: Int
  /// Feedback tuples that were read.
  public var feedbackTuples: Int
  /// The notifications by fate.
  public var fates: FateCounts
  /// What a connection over HTTP/2 that was read has besides; `nil` for others.
  public var http2: HTTP2Summary?
  /// Messages that were read of a connection of the device channel or of local push; `nil` for others.
  public var messages: Int?
  /// Bytes that were sent twice with different contents; the first ones were used.
  public var conflictingBytes: Int
  /// The limits that were reached.
  public var limits: [LimitKind]
  /// Other addresses under which the connection was captured as well: before or after an address translation.
  public var alsoSeenAs: [ConnectionEnds] = []
  /// The counts of the connection's selected records; `nil`: all records are selected.
  package var selected: Selected?

  package init(
    connection: Int, file: Int? = nil, flow: String? = nil, service: Service, otherProtocol: OtherProtocol? = nil,
    preamble: Preamble? = nil, preambleBytes: (client: Int, server: Int) = (client: 0, server: 0),
    isOnKnownPort: Bool = false, outline: ConnectionOutline = ConnectionOutline(),
    notCaptured: NotCaptured = NotCaptured(), client: Endpoint? = nil, server: Endpoint? = nil, opened: Timestamp,
    closed: Timestamp, end: End, tls: TLSSummary? = nil, clientBytes: Int, serverBytes: Int, missingBytes: Int,
    notifications: Int, errorResponses: Int, feedbackTuples: Int, fates: FateCounts, conflictingBytes: Int,
    limits: [LimitKind], alsoSeenAs: [ConnectionEnds] = [], selected: Selected? = nil
  ) {
    self.connection = connection
    self.file = file
    self.flow = flow
    self.service = service
    self.otherProtocol = otherProtocol
    self.preamble = preamble
    self.preambleBytes = preambleBytes
    self.isOnKnownPort = isOnKnownPort
    self.outline = outline
    self.notCaptured = notCaptured
    self.client = client
    self.server = server
    self.opened = opened
    self.closed = closed
    self.end = end
    self.tls = tls
    self.clientBytes = clientBytes
    self.serverBytes = serverBytes
    self.missingBytes = missingBytes
    self.notifications = notifications
    self.errorResponses = errorResponses
    self.feedbackTuples = feedbackTuples
    self.fates = fates
    self.conflictingBytes = conflictingBytes
    self.limits = limits
    self.alsoSeenAs = alsoSeenAs
    self.selected = selected
  }
}

extension ConnectionRecord {
  /// Counts of selected records.
  package struct Selected: Sendable {
    package var notifications = 0
    package var errorResponses = 0
    package var feedbackTuples = 0
    package var responses = 0
    package var messages = 0
    package var fates = FateCounts()

    package init(
      notifications: Int = 0, errorResponses: Int = 0, feedbackTuples: Int = 0, responses: Int = 0, messages: Int = 0,
      fates: FateCounts = FateCounts()
    ) {
      self.notifications = notifications
      self.errorResponses = errorResponses
      self.feedbackTuples = feedbackTuples
      self.responses = responses
      self.messages = messages
      self.fates = fates
    }
  }

  /// The record, with the counts of its selected records if there is a selection.
  package var counted: ConnectionRecord {
    guard let selected else { return self }
    var record = self
    (record.notifications, record.errorResponses) = (selected.notifications, selected.errorResponses)
    (record.feedbackTuples, record.fates) = (selected.feedbackTuples, selected.fates)
    record.http2?.responses = selected.responses
    if record.messages != nil { record.messages = selected.messages }
    return record
  }

  /// An end whose FIN, or RST after all of its bytes, was not captured: it may have sent more.
  package struct OpenEnd: Sendable, Equatable {
    /// The time of the end's last packet; `.none`: there is none, or the recording has no times.
    package var since = Timestamp.none
    /// The time of the RST that ended the connection; `nil`: none was captured.
    package var until: Timestamp?

    package init(
      since: Timestamp = .none, until: Timestamp? = nil
    ) {
      self.since = since
      self.until = until
    }
  }

  /// The parts of a connection that lie outside of its recording.
  package struct NotCaptured: Sendable, Equatable {
    /// Bytes may have been sent before the first captured ones.
    package var start = false
    /// The ends whose FIN or RST was not captured.
    package var client: OpenEnd?
    package var server: OpenEnd?

    /// The names of the missing parts, as in records.
    package var words: [String] {
      (start ? ["start"] : []) + (client != nil ? ["client_end"] : []) + (isServerOpen ? ["server_end"] : [])
    }

    /// More may have come from the server, as far as its client could still read it: a RST ends both directions.
    package var isServerOpen: Bool { server != nil && server?.until == nil }

    package init(
      start: Bool = false, client: OpenEnd? = nil, server: OpenEnd? = nil
    ) {
      self.start = start
      self.client = client
      self.server = server
    }
  }
}

/// The two ends of a connection.
public struct ConnectionEnds: Sendable, Hashable {
  public var client: Endpoint
  public var server: Endpoint

  public init(client: Endpoint, server: Endpoint) { (self.client, self.server) = (client, server) }
}
