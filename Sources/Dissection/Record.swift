import BinaryProtocol
import Bytes
import Measurement
import PacketCapture
import PushModel
import TLSDecryption

/// The sender of bytes: `client` is the provider, or the end that opened the connection.
public enum Direction: String, Sendable {
  case client, server
}

/// The service of a connection.
public enum Service: String, Sendable {
  case gateway, feedback
  /// The connection carries another, known protocol.
  case other
  case unknown
}

/// Where a record was found: its connection, its bytes in that direction's stream, the packet with its last byte.
public struct RecordPlace: Sendable {
  /// Counts from 1 in the order of the connections' first packets.
  public var connection: Int
  public var time: Timestamp
  /// 0 for raw dumps, which have no packets. Where there are several files, the file's number is in it as well
  /// (`PacketNumber`).
  public var packet: Int
  public var offset: Int
  public var length: Int

  /// The number of the file; `nil` if there is only one file.
  public var file: Int? { PacketNumber.file(packet) > 0 ? PacketNumber.file(packet) : nil }
  /// The packet's number in its file; `nil` for raw dumps.
  public var packetInFile: Int? { PacketNumber.packet(packet) > 0 ? PacketNumber.packet(packet) : nil }
}

/// A file that was opened.
public struct CaptureRecord: Sendable {
  public static let schema = 1
  /// Its number among the files, from 1; `nil` if there is only one file.
  public var file: Int?
  public var source: String
  public var format: CaptureFormat
  public var linkTypes: [LinkType]
  /// The selection of the following records, as options of the command; empty when all follow.
  public var selection: [String] = []
  /// It was read back from records of a selection: the recording's other records are missing. Not a field of the
  /// record.
  package var isOfSelection = false
}

/// A notification. A view: it lives as long as the bytes it was found in.
package struct NotificationRecord: ~Escapable {
  package let place: RecordPlace
  /// The notification's index on its connection, from 0; only decoded ones count.
  package let index: Int
  package let notification: Push
  /// The error in a frame whose length is valid and whose items do not fit it. The fields are those of the items before
  /// the error.
  package let problem: String?
  /// Its fate; `nil` when it is not known while it is written.
  package let fate: Fate?
  /// The verdict on its payload and frame; `nil` when they were not judged.
  package let verdict: PayloadVerdict?

  @_lifetime(copy frame)
  init(
    _ fields: PushFields, _ frame: RawSpan, at place: RecordPlace, index: Int,
    problem: String? = nil, fate: Fate? = nil, verdict: PayloadVerdict? = nil
  ) {
    self.place = place
    self.index = index
    self.problem = problem
    self.fate = fate
    self.verdict = verdict
    notification = Push(fields, frame)
  }
}

/// An error response and its effect on the notifications of its connection.
public struct ErrorResponseRecord: Sendable {
  public var place: RecordPlace
  public var response: ErrorResponse
  /// The index of the notification that it names; `nil` if none was seen with its identifier.
  public var notification: Int?
  public var accepted: Int?
  public var discarded: Int?
  /// Nanoseconds from the named notification's last byte to the response's, as captured.
  public var latencyNanoseconds: Int64?
  /// Above 1, the identifier was used more than once and the latest use was taken.
  public var candidates: Int
  /// The identifier is 0, which may mean none, so that it is not taken to name a notification.
  public var isAmbiguous = false
  /// Notifications that its packet acknowledges; `nil` when that is not known.
  package var acknowledged: Int?
}

/// The fate of consecutive notifications of one connection. It is emitted once no response can change it any more, at
/// the latest before the connection's record; a connection's ranges are in order and without gaps.
public struct FateRecord: Sendable, Equatable {
  public var connection: Int
  /// The first and last notification, by index.
  public var first: Int
  public var last: Int
  public var fate: Fate
}

/// A feedback tuple. A view, as `NotificationRecord`.
public struct FeedbackRecord: ~Escapable {
  public let place: RecordPlace
  public let index: Int
  public let tuple: FeedbackTuple

  @_lifetime(copy tuple)
  init(place: RecordPlace, index: Int, tuple: consuming FeedbackTuple) {
    self.place = place
    self.index = index
    self.tuple = tuple
  }
}

/// Bytes that the capture does not hold, or that belong to a record it does not hold whole.
public struct GapRecord: Sendable {
  /// Why bytes are missing.
  public typealias Reason = CapturedGap

  public var place: RecordPlace
  public var direction: Direction
  public var reason: Reason
}

/// Bytes that are not a record.
public struct MalformedRecord: Sendable {
  public var place: RecordPlace
  public var direction: Direction
  public var problem: String
  /// The first bytes, at most 64.
  public var bytes: [UInt8]
}

/// A connection as a whole, when it has ended.
public struct ConnectionRecord: Sendable {
  /// How a captured connection ended.
  public typealias End = CapturedEnd

  public var connection: Int
  /// The number of the file with its first packet; `nil` if there is only one file.
  public var file: Int?
  /// A key that is the same in every shard of a recording; `nil` if the whole recording is read.
  public var flow: String?
  public var service: Service
  /// The other protocol that was recognised, on any port; `nil`: none.
  public var otherProtocol: OtherProtocol?
  /// The preamble before the first record or the TLS handshake; `nil`: none.
  public var preamble: Preamble?
  /// Bytes of both ends that it took, which are in no other count. No field of the record.
  package var preambleBytes = (client: 0, server: 0)
  /// One of its ports is a gateway's or feedback service's. Not a field of the record.
  public var isOnKnownPort = false
  /// How it began and ended, packet by packet. No field of the record.
  package var outline = ConnectionOutline()
  /// The parts of the connection that the recording does not show.
  package var notCaptured = NotCaptured()
  public var client: Endpoint?
  public var server: Endpoint?
  public var opened: Timestamp
  /// `.none` while no end was seen.
  public var closed: Timestamp
  /// The first FIN or RST: who ended it.
  public var end: End
  public var tls: TLSSummary?
  /// Application bytes in the capture, by direction; TLS bytes if the connection is not decrypted.
  public var clientBytes: Int
  public var serverBytes: Int
  /// Bytes that were sent and are not in the capture, in both directions; under TLS, TLS bytes.
  public var missingBytes: Int
  public var notifications: Int
  public var errorResponses: Int
  public var feedbackTuples: Int
  public var fates: FateCounts
  /// Bytes that were sent twice with different contents; the first ones were used.
  public var conflictingBytes: Int
  /// The limits that were hit, by the names of their options.
  public var limits: [LimitKind]
  /// Other addresses under which the connection was captured as well: before or after an address translation.
  public var alsoSeenAs: [ConnectionEnds] = []
  /// The counts of the connection's selected records; `nil`: all records are selected.
  package var selected: Selected?
}

extension ConnectionRecord {
  /// Counts of selected records.
  package struct Selected: Sendable {
    package var notifications = 0
    package var errorResponses = 0
    package var feedbackTuples = 0
    package var fates = FateCounts()
  }

  /// The record, with the counts of its selected records if there is a selection.
  var counted: ConnectionRecord {
    guard let selected else { return self }
    var record = self
    (record.notifications, record.errorResponses) = (selected.notifications, selected.errorResponses)
    (record.feedbackTuples, record.fates) = (selected.feedbackTuples, selected.fates)
    return record
  }

  /// An end whose FIN, or RST after all of its bytes, was not captured: it may have sent more.
  package struct OpenEnd: Sendable, Equatable {
    /// The time of the end's last packet; `.none`: there is none, or the recording has no times.
    package var since = Timestamp.none
    /// The time of the RST that ended the connection; `nil`: none was captured.
    package var until: Timestamp?
  }

  /// The parts of a connection that lie outside of its recording.
  package struct NotCaptured: Sendable, Equatable {
    /// Bytes may have been sent before the first captured ones.
    package var start = false
    /// The ends whose FIN or RST was not captured.
    package var client: OpenEnd?
    package var server: OpenEnd?

    /// The names of the missing parts, as in records.
    var words: [String] {
      (start ? ["start"] : []) + (client != nil ? ["client_end"] : []) + (isServerOpen ? ["server_end"] : [])
    }

    /// More may have come from the server, as far as its client could still read it: a RST ends both directions.
    var isServerOpen: Bool { server != nil && server?.until == nil }
  }
}

/// The two ends of a connection.
public struct ConnectionEnds: Sendable, Hashable {
  public var client: Endpoint
  public var server: Endpoint

  public init(client: Endpoint, server: Endpoint) { (self.client, self.server) = (client, server) }
}

/// Packets that the capturing program did not get or could not write.
public struct CaptureLossRecord: Sendable {
  public var file: Int?
  public var loss: CaptureLoss
}

/// Totals over everything that was read.
public struct SummaryRecord: Sendable {
  public var packets = 0
  public var connections = 0
  public var notifications = 0
  public var errorResponses = 0
  public var feedbackTuples = 0
  public var gaps = 0
  public var malformed = 0
  public var undecryptedConnections = 0
  /// Packets that the capture lost.
  public var droppedPackets = 0
  /// Packets of unread protocols that may carry TCP; and what they are, as text. If no connection is read, the text
  /// also names the other packets.
  public var unreadPackets = 0
  public var unread: [String] = []
  /// Connections that could not be decrypted, wholly or in part. Not a field of the record; each connection's record
  /// says what is missing.
  public var partlyClosedConnections = 0
  /// Connections to a feedback service that could be read, to the end of an empty list too. No field of the record.
  public var readFeedbackConnections = 0
  /// Connections that have ended. No field of the record, as what follows.
  public var endedConnections = 0
  public var errorsByRejection: [Rejection: Int] = [:]
  /// The fates decided so far; on open connections they may still change.
  public var settled = FateCounts()

  public init() {}

  /// Something was missing, malformed or could not be decrypted.
  public var isDamaged: Bool { droppedPackets > 0 || gaps > 0 || malformed > 0 || partlyClosedConnections > 0 }

  /// Whether APNs traffic was read. Otherwise nothing is known about notifications.
  public var hasRead: Bool {
    notifications > 0 || errorResponses > 0 || feedbackTuples > 0 || readFeedbackConnections > 0
  }

  mutating func noteEnd(of connection: ConnectionRecord) {
    endedConnections += 1
    if let tls = connection.tls {
      if !tls.isDecrypted { undecryptedConnections += 1 }
      if !tls.isWhole { partlyClosedConnections += 1 }
    }
    // A service that sent a FIN and no bytes has an empty list; one that did not answer has none.
    let isEmptyList = connection.end == .serverFIN && connection.serverBytes == 0 && connection.missingBytes == 0
    if connection.service == .feedback, connection.otherProtocol == nil, connection.tls?.isDecrypted != false,
      connection.feedbackTuples > 0 || isEmptyList
    {
      readFeedbackConnections += 1
    }
  }
}

/// The summary of one input after it was read.
public struct CaptureOutcome: Sendable {
  /// Its number among the files, from 1; `nil` if there is only one file.
  public var file: Int?
  public var source: String
  public var format: CaptureFormat
  public var linkTypes: [LinkType] = []
  /// Bytes on disk, `nil` for pipes.
  public var size: Int?
  public var packets = 0
  /// Packets that the snap length cut.
  public var cutPackets = 0
  /// Packets without a TCP segment that is read.
  public var unread = UnreadTraffic()
  public var firstTime = Timestamp.none
  public var lastTime = Timestamp.none
  /// The number of packets whose time is before an earlier packet's, and the most nanoseconds by which one is before
  /// the latest of these.
  public var latePackets = 0
  public var longestDelay: Int64 = 0
  /// Warnings about the file; everything before the damage was read.
  public var warnings: [String] = []
  /// Why it was not read to its end, or not at all, when the operating system did not let it be read.
  public var failure: CaptureError?

  /// Adds the link types that are missing, up to `listedLinkTypes`.
  mutating func add(_ others: [LinkType]) {
    for linkType in others where linkTypes.count < Self.listedLinkTypes && !linkTypes.contains(linkType) {
      linkTypes.append(linkType)
    }
  }

  private static let listedLinkTypes = 64

  mutating func add(_ part: FilePart) {
    add(part.linkTypes)
    packets += part.packets
    cutPackets += part.cutPackets
    if part.firstTime.isKnown && (!firstTime.isKnown || part.firstTime < firstTime) { firstTime = part.firstTime }
    if part.lastTime > lastTime { lastTime = part.lastTime }
    latePackets += part.latePackets
    longestDelay = max(longestDelay, part.longestDelay)
  }
}

/// Receives records as they are found: writers write them, `Inspection` counts them.
public protocol RecordSink {
  /// The results of other threads, which are merged in packet order.
  associatedtype Lane: RecordLane = FrameLane
  /// A lane for another thread, which shares nothing with the sink.
  func makeLane() -> sending Lane
  /// Asked for from time to time, while lanes do nothing, and given to each.
  var laneKnowledge: Lane.Knowledge { get }
  /// Announces an event of a connection: its state may be prefetched.
  mutating func prepare(for connection: Int)
  /// Notifications that a lane has made a batch of, as if each had come by itself.
  ///
  /// - Parameters:
  ///   - range: positions in the batch.
  ///   - block: the bytes that the lane began the batch with.
  mutating func receive(_ batch: inout Lane.Batch, _ range: Range<Int>, in block: RawSpan)
  mutating func receive(_ record: CaptureRecord)
  /// Receives a notification, in parts: a value that holds them all would go through memory, which costs the fastest
  /// sink a tenth of its time. `NotificationRecord` puts them together.
  mutating func receive(_ fields: PushFields, _ frame: RawSpan, at place: RecordPlace, index: Int)
  /// A frame whose length is right and whose items do not fit it; `fields` has the fields before the error.
  mutating func receive(
    malformed problem: String, _ fields: PushFields, _ frame: RawSpan, at place: RecordPlace, index: Int)
  /// An error response when it was seen: notifications written after it are not counted yet.
  mutating func receiveEarly(_ record: ErrorResponseRecord)
  /// An error response with its final counts, after its connection has ended.
  mutating func receive(_ record: ErrorResponseRecord)
  /// Fates that are final.
  mutating func receive(_ record: FateRecord)
  mutating func receive(_ record: borrowing FeedbackRecord)
  mutating func receive(_ record: GapRecord)
  mutating func receive(_ record: MalformedRecord)
  mutating func receive(_ record: ConnectionRecord)
  mutating func receive(_ record: CaptureLossRecord)
  mutating func receive(_ record: SummaryRecord)
  /// An input has been read.
  mutating func receive(_ outcome: CaptureOutcome)
  /// A connection was opened; its record comes when it ends.
  mutating func opened(connection: Int, at time: Timestamp)
  /// A connection's client presented this certificate. Called before the connection's first notification, perhaps more
  /// than once.
  mutating func presented(subject: String, connection: Int)
  /// A connection has ended whose record goes to another sink.
  mutating func ended(connection: Int)
  /// A piece of a gateway connection's client stream ended this many notifications.
  mutating func segment(notifications: Int, at time: Timestamp)
  /// Whether the records that a selection leaves out are wanted as well: statements about selected records may depend
  /// on them.
  var takesWholeRecording: Bool { get }
  /// The records that follow are selected, or are not. Without a selection all are.
  mutating func mark(isSelected: Bool)
  /// A record of a connection is selected, which was opened before.
  mutating func select(connection: Int)
  /// No input for a moment, e.g. from a live pipe: buffered output should be flushed.
  mutating func pause()
  /// Whether records are still wanted; `false` ends the reading.
  var isOpen: Bool { get }

  /// Reads one input into `dissection`. There is nothing to implement. It is a requirement, and not only an extension's
  /// method, because a witness is compiled for its own type: every sink of this module gets the whole path from packet
  /// to record specialised, which a generic call from another module would not.
  static func read(
    _ input: consuming CaptureInput, source: String, into dissection: inout Dissection<Self>,
    proceed: (DissectionProgress) -> Bool
  ) throws -> CaptureOutcome

  /// Reads a recording of any number of files into `dissection`.
  static func read(
    _ recording: Recording, sources: [String], into dissection: inout Dissection<Self>,
    proceed: (DissectionProgress) -> Bool
  ) throws -> [CaptureOutcome]
}

extension RecordSink where Lane == FrameLane {
  public func makeLane() -> sending FrameLane { FrameLane() }

  @inline(__always)
  public mutating func receive(_ batch: inout FrameLane.Batch, _ range: Range<Int>, in block: RawSpan) {
    batch.pass(range, in: block, to: &self)
  }
}

/// A sink that ignores individual notifications.
public protocol ConnectionSink: RecordSink where Lane == EmptyLane {}

extension ConnectionSink {
  public func makeLane() -> sending EmptyLane { EmptyLane() }
  public mutating func receive(_ batch: inout EmptyLane.Batch, _ range: Range<Int>, in block: RawSpan) {}
}

extension RecordSink where Lane.Knowledge == NoKnowledge {
  public var laneKnowledge: NoKnowledge { NoKnowledge() }
}

extension RecordSink {
  @inline(__always) public mutating func prepare(for connection: Int) {}
  public mutating func receiveEarly(_ record: ErrorResponseRecord) {}
  public mutating func receive(_ record: CaptureLossRecord) {}
  public mutating func receive(_ record: FateRecord) {}
  public mutating func receive(_ outcome: CaptureOutcome) {}
  public mutating func opened(connection: Int, at time: Timestamp) {}
  public mutating func presented(subject: String, connection: Int) {}
  public mutating func ended(connection: Int) {}
  public mutating func segment(notifications: Int, at time: Timestamp) {}
  public var takesWholeRecording: Bool { false }
  public mutating func mark(isSelected: Bool) {}
  public mutating func select(connection: Int) {}
  public mutating func pause() {}

  public static func read(
    _ input: consuming CaptureInput, source: String, into dissection: inout Dissection<Self>,
    proceed: (DissectionProgress) -> Bool
  ) throws -> CaptureOutcome {
    try dissection.readInput(input, source: source, proceed: proceed)
  }

  public static func read(
    _ recording: Recording, sources: [String], into dissection: inout Dissection<Self>,
    proceed: (DissectionProgress) -> Bool
  ) throws -> [CaptureOutcome] {
    try dissection.readRecording(recording, sources: sources, proceed: proceed)
  }
}
