import Measurement
import Records
import TLSDecryption

/// Connections without readable APNs traffic, counted by server port and protocol.
struct UnreadConnections {
  /// The number of distinct pairs of port and protocol; further pairs are counted together.
  private static let limit = 1_024
  /// The number of pairs that findings list.
  private static let listed = 5

  fileprivate struct Kind: Hashable {
    var port: UInt16
    var other: OtherProtocol?
  }

  private var total = 0
  private var encrypted = 0
  /// Encrypted connections for which only the secret is missing.
  private var withoutSecret = 0
  /// Encrypted connections that HTTP/2 may be in; not part of `encrypted`.
  private var encryptedOther = 0
  private var partlyEncrypted = 0
  private var empty = 0
  /// Unread connections to the port of devices, and the encrypted ones among them, for which only the secret is
  /// missing.
  private var ofDevices = 0
  private var encryptedOfDevices = 0
  private var kinds: [Kind: Int] = [:]
  private var uncounted = 0
  /// Connections of this protocol's services that carry another protocol.
  private var strangers: [Kind: Int] = [:]

  /// The port of APNs for devices.
  private static let devicePort: UInt16 = 5223

  mutating func note(_ record: ConnectionRecord) {
    total += 1
    // Messages that were read have counts of their own.
    if let messages = record.messages, messages > 0, record.tls?.isWhole != false { return }
    if record.server?.port == Self.devicePort, record.notifications + record.feedbackTuples == 0 {
      ofDevices += 1
      if record.tls?.isDecrypted == false { encryptedOfDevices += 1 }
    }
    if record.mayBeHTTP2 { encryptedOther += 1 }
    let speaksOther = record.otherProtocol != nil && record.otherProtocol != .tls
    if let tls = record.tls, !tls.isWhole, !speaksOther {
      if tls.isDecrypted { partlyEncrypted += 1 } else { encrypted += 1 }
      if !tls.isDecrypted, tls.problem.map({ $0 == TLSStream.noSecrets }) ?? true { withoutSecret += 1 }
    }
    if record.tls?.isDecrypted == false, !speaksOther { return }
    // HTTP/2 that was read is in the counts of its requests.
    if record.http2 != nil, record.service != .other { return }
    if let messages = record.messages, messages > 0 { return }
    let kind = Kind(port: record.server?.port ?? 0, other: record.otherProtocol)
    switch record.service {
    case .gateway where record.otherProtocol == nil, .feedback where record.otherProtocol == nil: break
    case .gateway, .feedback, .channels: Self.count(kind, in: &strangers, &uncounted)
    case .other where record.isOnKnownPort: Self.count(kind, in: &strangers, &uncounted)
    case .unknown where record.clientBytes + record.serverBytes == 0: empty += 1
    case .unknown, .other: Self.count(kind, in: &kinds, &uncounted)
    }
  }

  private static func count(
    _ kind: Kind, _ count: Int = 1, in kinds: inout [Kind: Int], _ uncounted: inout Int
  ) {
    if kinds[kind] != nil || kinds.count < limit { kinds[kind, default: 0] += count } else { uncounted += count }
  }

  // MARK: counts

  var counts: InspectionReport.Unread {
    func rows(_ kinds: [Kind: Int], isKnownPort: Bool) -> [InspectionReport.PortProtocol] {
      kinds.sorted { ($0.key.port, $0.key.name) < ($1.key.port, $1.key.name) }.map {
        .init(port: Int($0.key.port), protocol: $0.key.other?.rawValue, isKnownPort: isKnownPort, count: $0.value)
      }
    }
    var counts = InspectionReport.Unread()
    (counts.connections, counts.encrypted, counts.withoutSecret) = (total, encrypted, withoutSecret)
    (counts.partlyEncrypted, counts.empty, counts.further) = (partlyEncrypted, empty, uncounted)
    (counts.ofDevices, counts.encryptedOfDevices) = (ofDevices, encryptedOfDevices)
    counts.encryptedOther = encryptedOther > 0 ? encryptedOther : nil
    counts.protocols = rows(kinds, isKnownPort: false) + rows(strangers, isKnownPort: true)
    return counts
  }

  mutating func add(_ others: InspectionReport.Unread) {
    total += others.connections
    encrypted += others.encrypted
    withoutSecret += others.withoutSecret
    encryptedOther += others.encryptedOther ?? 0
    partlyEncrypted += others.partlyEncrypted
    empty += others.empty
    ofDevices += others.ofDevices ?? 0
    encryptedOfDevices += others.encryptedOfDevices ?? 0
    uncounted += others.further
    for row in others.protocols {
      let kind = Kind(
        port: UInt16(truncatingIfNeeded: row.port), other: row.protocol.flatMap(OtherProtocol.init(rawValue:)))
      if row.isKnownPort {
        Self.count(kind, row.count, in: &strangers, &uncounted)
      } else {
        Self.count(kind, row.count, in: &kinds, &uncounted)
      }
    }
  }

  /// Findings about unread parts of a recording.
  ///
  /// - Parameters:
  ///   - isSelection: only selected records, and their connections, were seen.
  ///   - hasRequests: the recording has providers over HTTP/2, so what may be HTTP/2 may be theirs.
  func findings(
    _ summary: InspectionReport.Summary, isSelection: Bool = false, hasRequests: Bool = false
  ) -> [InspectionReport.FindingRow] {
    var rows: [InspectionReport.FindingRow] = []
    func add(_ kind: FindingKind, _ count: Int, _ text: String) {
      rows.append(InspectionReport.FindingRow(kind, count: count, text: text))
    }
    let hasRead = summary.hasRead
    if isSelection && !hasRead { add(.nothingRead, 1, FindingKind.nothingSelectedSentence) }
    if isSelection && summary.connections == 0 { return rows }
    if !isSelection && !hasRead { add(.nothingRead, 1, FindingKind.nothingReadSentence(summary)) }
    // Without a connection the first finding already states it.
    if !isSelection, let packets = summary.unreadPackets, summary.connections > 0 {
      add(.unreadPackets, packets, FindingKind.unreadPacketsSentence(packets, summary))
    }
    let http2 = hasRequests ? encryptedOther : 0
    let encrypted = max(0, encrypted - encryptedOfDevices) + http2
    let withoutSecret = min(max(0, withoutSecret - encryptedOfDevices) + http2, encrypted)
    if encrypted > 0 {
      add(
        .undecryptedConnection, encrypted,
        FindingKind.undecryptedSentence(encrypted, of: total, onlySecretsMissing: withoutSecret == encrypted))
    }
    if partlyEncrypted > 0 {
      add(.partlyDecrypted, partlyEncrypted, FindingKind.partlyDecryptedSentence(partlyEncrypted, of: total))
    }
    if ofDevices > 0 { add(.devicePort, ofDevices, FindingKind.devicePortSentence(ofDevices, of: total)) }
    // Other protocols are reported only if nothing of this protocol was read.
    let shown = hasRead ? strangers : strangers.merging(kinds) { $0 + $1 }
    let sorted = shown.sorted { ($1.value, $0.key.port, $0.key.name) < ($0.value, $1.key.port, $1.key.name) }
    for (kind, count) in sorted.prefix(Self.listed) {
      let other = kind.other.map { "\($0.name)\($0.advice)" }
      add(.otherProtocol, count, FindingKind.otherProtocolSentence(count, port: kind.port, other: other))
    }
    let more = sorted.dropFirst(Self.listed).reduce(0) { $0 + $1.value } + (hasRead ? 0 : uncounted)
    if more > 0 { add(.otherProtocol, more, FindingKind.otherProtocolsSentence(more)) }
    if !hasRead && empty > 0 {
      add(.emptyConnection, empty, FindingKind.emptyConnectionSentence(empty, of: total))
    }
    return rows
  }
}

extension UnreadConnections.Kind {
  fileprivate var name: String { other?.rawValue ?? "" }
}
