import BinaryProtocol
import Bytes
import PacketCapture
import PushModel
import Records

/// Writes the undamaged connections of a recording as a new capture, in which they are clear TCP.
///
/// A sink: the recording is read into it once, then `write` is called. A frame, response or tuple is in the packet that
/// completed it, so that decoding the capture gives the same records. Whether a connection is undamaged is known
/// only at its end, so its packets are kept as rows until then; many rows are written to unnamed files.
package final class ClearCapture: RecordSink {
  package struct Options: Sendable {
    /// Bytes of memory for rows and their contents; what exceeds it is written to unnamed files.
    package var memory = 256 << 20
    /// The folder of the unnamed files.
    package var folder = "/tmp"
    /// Packets were read in order of time instead of file order.
    package var isSortedByTime = false
    /// Files were read one after the other. Otherwise packets of several files were merged by time.
    package var isSeparate = false
    package init() {}
  }

  /// Records of a connection that has not ended.
  private struct OpenConnection {
    var clientBytes = 0
    var serverBytes = 0
    var rows = 0
    var isDamaged = false
    /// The connection's first row.
    var first: ClearRow?
    /// The index and stream offset of each notification that begins a row. Error responses, which are received at the
    /// connection's end, get their places from this list.
    var begins: [(index: Int, offset: Int)] = []

    mutating func noteBegin(_ index: Int, _ offset: Int) {
      if begins.count >= 2 * ClearCapture.maximumBegins { begins.removeFirst(ClearCapture.maximumBegins) }
      begins.append((index, offset))
    }

    /// The stream offset of the first remembered row that begins with notification `index` or a later one; the client's
    /// bytes so far if there is none.
    func offset(ofNotification index: Int) -> Int {
      var (low, high) = (0, begins.count)
      while low < high {
        let middle = (low + high) / 2
        if begins[middle].index < index { low = middle + 1 } else { high = middle }
      }
      return low < begins.count ? begins[low].offset : clientBytes
    }
  }

  /// The least number of latest row beginnings that are remembered for a connection.
  ///
  /// A response usually acknowledges what was written shortly before it. One that acknowledges less than the oldest
  /// remembered beginning is placed after that one.
  private static let maximumBegins = 1 << 9

  private let options: Options
  private var contents: ContentStore
  private let rows: RowSorter<ClearOrder>
  private var open: [Int: OpenConnection] = [:]
  /// The row that grows, because its packet may hold more.
  private var latest: ClearRow?
  private var latestBytes: [UInt8] = []
  /// A bit for each connection, by number: it is written.
  private var written: [UInt64] = []
  package private(set) var counts = ClearCounts()
  /// The first input that is a raw dump: it has no packets.
  package private(set) var dump: String?
  /// Why a temporary file cannot be used; nothing more is taken then.
  package private(set) var failure: UnnamedFile.Failure?

  package init(_ options: Options) {
    self.options = options
    contents = ContentStore(memory: options.memory / 8, folder: options.folder)
    rows = RowSorter(memory: options.memory / 2, folder: options.folder)
  }

  package var isOpen: Bool { failure == nil && dump == nil }

  /// Whether something did not fit into memory.
  var hasSpilled: Bool { rows.hasSpilled }

  // MARK: records

  package func receive(_ fields: PushFields, _ frame: RawSpan, at place: RecordPlace, index: Int) {
    if keep(frame, at: place, isFromClient: true) { open[place.connection]?.noteBegin(index, place.offset) }
  }

  /// The fields are unknown, so it is unknown which bytes are personal data: the connection counts as damaged.
  package func receive(
    malformed problem: String, _ fields: PushFields, _ frame: RawSpan, at place: RecordPlace, index: Int
  ) {
    noteDamage(place.connection)
  }

  package func receive(_ record: ErrorResponseRecord) {
    var bytes = ByteWriter(capacity: 64)
    record.response.encode(into: &bytes)
    let acknowledged = record.acknowledged.flatMap { open[record.place.connection]?.offset(ofNotification: $0) }
    keep(bytes.bytes, at: record.place, isFromClient: false, acknowledged: acknowledged ?? -1)
  }

  package func receive(_ record: borrowing FeedbackRecord) {
    var bytes = ByteWriter(capacity: 64)
    record.tuple.encode(into: &bytes)
    keep(bytes.bytes, at: record.place, isFromClient: false)
  }

  package var takesHTTP2: Bool { true }
  /// Frames of content come later than those behind them, with the places that they have.
  package func receive(http2 bytes: RawSpan, at place: RecordPlace, _ direction: Direction) {
    keep(bytes, at: place, isFromClient: direction == .client)
  }

  package func receive(_ record: GapRecord) { noteDamage(record.place.connection) }
  package func receive(_ record: MalformedRecord) { noteDamage(record.place.connection) }
  package func receive(_ record: CaptureRecord) {
    if record.format == .raw || record.format == .hex { dump = dump ?? record.source }
  }
  package func receive(_ record: SummaryRecord) {}

  private func noteDamage(_ connection: Int) { open[connection, default: OpenConnection()].isDamaged = true }

  package func receive(_ record: ConnectionRecord) {
    let its = open.removeValue(forKey: record.connection) ?? OpenConnection()
    guard let client = record.client, let server = record.server else { return }
    if let refusal = ClearRefusal(
      record, isDamaged: its.isDamaged, clientBytes: its.clientBytes, serverBytes: its.serverBytes)
    {
      counts.add(refusal)
      return
    }
    counts.connections += 1
    let responses = record.http2?.responses ?? 0
    if record.notifications + record.errorResponses + record.feedbackTuples + responses > 0
      || record.service == .feedback
    {
      counts.withRecords += 1
    }
    while written.count <= record.connection / 64 { written.append(0) }
    written[record.connection / 64] |= 1 << UInt64(record.connection % 64)
    for closing in record.outline.closings {
      var row = row(.closing, record.connection, closing.time, closing.packet)
      row.isFromClient = closing.isFromClient
      row.isReset = closing.isReset
      append(row)
    }
    var row = row(.opened, record.connection, record.opened, record.outline.firstPacket)
    if let first = its.first, ClearOrder.precedes(first, row) {
      (row.file, row.order, row.packet) = (first.file, first.order, first.packet)
    }
    var bytes = ByteWriter(capacity: 64)
    // Of HTTP/2 the frames are written anew, with lengths and places of their own.
    SynthesizedConnection.write(
      client: client, server: server, clientBytes: its.clientBytes, serverBytes: its.serverBytes, into: &bytes)
    bytes.write(bigEndian: its.rows + record.outline.closings.count)
    bytes.write(bigEndian: record.http2 == nil ? record.preambleBytes.client : 0)
    bytes.write(bigEndian: record.http2 == nil ? record.preambleBytes.server : 0)
    append(row, bytes.bytes)
  }

  // MARK: rows

  private func row(_ kind: ClearRow.Kind, _ connection: Int, _ time: Timestamp, _ packet: Int) -> ClearRow {
    var row = ClearRow(kind, connection: connection)
    let file = PacketNumber.file(packet)
    if options.isSeparate { row.file = file }
    if options.isSortedByTime || (file > 0 && !options.isSeparate) { row.order = time.nanoseconds }
    row.packet = packet
    row.time = time.nanoseconds
    return row
  }

  /// - Returns: whether a row begins with it.
  @discardableResult
  private func keep(_ bytes: RawSpan, at place: RecordPlace, isFromClient: Bool, acknowledged: Int = -1) -> Bool {
    var its = open[place.connection] ?? OpenConnection()
    if its.isDamaged { return false }
    var begins = false
    if isFromClient { its.clientBytes += bytes.byteCount } else { its.serverBytes += bytes.byteCount }
    if let latest, latest.connection == place.connection, latest.isFromClient == isFromClient,
      latest.packet == place.packet, latest.offset + latestBytes.count == place.offset
    {
      latestBytes.append(copying: bytes)
    } else {
      keepLatest()
      var row = row(.data, place.connection, place.time, place.packet)
      row.offset = place.offset
      row.isFromClient = isFromClient
      row.acknowledged = acknowledged
      begins = true
      latest = row
      latestBytes.append(copying: bytes)
      its.rows += 1
      if its.first.map({ ClearOrder.precedes(row, $0) }) ?? true { its.first = row }
    }
    open[place.connection] = its
    return begins
  }

  private func keepLatest() {
    if let latest { append(latest, latestBytes.rawBytes) }
    latest = nil
    latestBytes.removeAll(keepingCapacity: true)
  }

  private func append(_ row: ClearRow, _ bytes: RawSpan? = nil) {
    guard failure == nil else { return }
    var row = row
    do throws(UnnamedFile.Failure) {
      // Every content is distinct: its number is the key.
      let number = UInt64(rows.count) + 1
      if let bytes { row.place = try contents.keep(bytes, key: ContentKey(high: number, low: number)) }
      try rows.append(row)
    } catch {
      failure = error
    }
  }

  // MARK: packets

  /// Writes the capture, once.
  ///
  /// - Parameters:
  ///   - output: receives each piece; `false` ends the writing.
  ///   - proceed: called after every packet; `false` ends the writing, too.
  package func write(to output: (RawSpan) -> Bool, proceed: () -> Bool) throws(UnnamedFile.Failure) {
    keepLatest()
    if let failure { throw failure }
    let interface = PcapngBlock.interface(linkType: LinkType.raw.rawValue, snapLength: 0, digits: 9)
    guard output(PcapngBlock.section().rawBytes), output(interface.rawBytes) else { return }
    var connections: [Int: (packets: SynthesizedConnection, rows: Int, preamble: (client: Int, server: Int))] = [:]
    var sorted = try rows.sorted()
    while let row = try sorted.next(), proceed() {
      guard isWritten(row.connection) else { continue }
      let bytes = row.place < 0 ? [] : try contents.string(at: row.place)
      if row.kind == .opened {
        guard let connection = SynthesizedConnection(number: row.connection, parsing: bytes.rawBytes) else { continue }
        let rows = Int(truncatingIfNeeded: bytes.rawBytes.uint64(at: SynthesizedConnection.writtenLength))
        let end = SynthesizedConnection.writtenLength + 8
        let preamble = (
          client: Int(truncatingIfNeeded: bytes.rawBytes.uint64(at: end)),
          server: Int(truncatingIfNeeded: bytes.rawBytes.uint64(at: end + 8))
        )
        if rows > 0 { connections[row.connection] = (connection, rows, preamble) }
        guard write(connection.handshake(), row, output) else { return }
      } else if let preamble = connections[row.connection]?.preamble,
        let packets = connections[row.connection]?.packets.packets(for: row.without(preamble), bytes)
      {
        let rows = connections[row.connection]?.rows ?? 1
        if rows > 1 { connections[row.connection]?.rows = rows - 1 } else { connections[row.connection] = nil }
        guard write(packets, row, output) else { return }
      }
    }
  }

  private func isWritten(_ connection: Int) -> Bool {
    let word = connection / 64
    return written.indices.contains(word) && written[word] & 1 << UInt64(connection % 64) != 0
  }

  private func write(_ packets: [[UInt8]], _ row: ClearRow, _ output: (RawSpan) -> Bool) -> Bool {
    for packet in packets {
      let block =
        row.time == Timestamp.none.nanoseconds
        ? PcapngBlock.packet(simple: packet.rawBytes)
        : PcapngBlock.packet(
          time: UInt64(bitPattern: row.time), length: UInt32(truncatingIfNeeded: packet.count), packet.rawBytes)
      guard output(block.rawBytes) else { return false }
      counts.packets += 1
    }
    return true
  }
}

extension ClearRow {
  /// The copy has no preamble, which may name hosts: stream offsets begin after it.
  fileprivate func without(_ preamble: (client: Int, server: Int)) -> ClearRow {
    var row = self
    row.offset -= isFromClient ? preamble.client : preamble.server
    if acknowledged >= 0 { row.acknowledged -= isFromClient ? preamble.server : preamble.client }
    return row
  }
}

extension SynthesizedConnection {
  fileprivate mutating func packets(for row: ClearRow, _ bytes: [UInt8]) -> [[UInt8]] {
    row.kind == .closing
      ? [closing(fromClient: row.isFromClient, isReset: row.isReset)]
      : data(
        bytes.rawBytes, at: row.offset, fromClient: row.isFromClient,
        acknowledging: row.acknowledged >= 0 ? row.acknowledged : nil)
  }
}
