import Bytes
import HTTP2

/// A handler that writes down what it is told, and checks that slots are used as promised.
struct ConnectionLog: ConnectionHandler {
  struct Section: Equatable {
    var kind: FieldSection.Kind
    var extent: FieldSection.Extent
    var endsStream: Bool
    var stream: UInt32
    /// `?` for what is unknown.
    var fields: [String]
    var offset: Int
    var length: Int
  }

  var sections: [Section] = []
  var contents: [UInt32: [UInt8]] = [:]
  var partialContents: Set<UInt32> = []
  var ended: [UInt32] = []
  var resets: [UInt32: ErrorCode?] = [:]
  var goAways: [(last: UInt32, code: ErrorCode, debug: String)] = []
  var settings: [[Setting]] = []
  var inForce: [Settings] = []
  var pings: [UInt64] = []
  var violations: [Violation] = []
  var missing: [(range: Range<Int>, losesTable: Bool)] = []
  var unread: [(cause: FrameReader.UnreadCause, range: Range<Int>)] = []
  var closed: [UInt32: StreamEnd] = [:]
  var lossesOfSettings = 0
  /// Reading is to pause after each frame.
  var isFull = false
  /// The stream that has each slot.
  private var slots: [Int: UInt32] = [:]
  /// A slot that two streams had at once.
  var isSlotShared = false

  private mutating func check(_ place: StreamPlace) {
    if let other = slots[place.slot], other != place.stream { isSlotShared = true }
    slots[place.slot] = place.stream
  }

  mutating func receive(_ section: FieldSection, _ fields: FieldList, on place: StreamPlace, _ origin: FrameOrigin) {
    check(place)
    sections.append(
      Section(
        kind: section.kind, extent: section.extent, endsStream: section.endsStream, stream: place.stream,
        fields: texts(fields), offset: origin.offset, length: origin.length))
    if section.endsStream { ended.append(place.stream) }
  }

  mutating func receive(
    content: RawSpan, isWhole: Bool, endsStream: Bool, on place: StreamPlace, _ origin: FrameOrigin
  ) {
    check(place)
    contents[place.stream, default: []].append(copying: content)
    if !isWhole { partialContents.insert(place.stream) }
    if endsStream { ended.append(place.stream) }
  }

  mutating func receive(reset code: ErrorCode?, onClosed stream: UInt32, _ origin: FrameOrigin) {
    resets[stream] = code
  }
  mutating func receive(reset code: ErrorCode?, on place: StreamPlace, _ origin: FrameOrigin) {
    resets[place.stream] = code
  }

  mutating func receive(goAway lastStream: UInt32, _ code: ErrorCode, debugData: RawSpan, _ origin: FrameOrigin) {
    goAways.append((lastStream, code, String(decoding: Array(copying: debugData), as: UTF8.self)))
  }

  mutating func receive(settings: [Setting], _ origin: FrameOrigin) { self.settings.append(settings) }
  mutating func receiveAcknowledgement(inForce settings: Settings, _ origin: FrameOrigin) { inForce.append(settings) }
  mutating func receiveLossOfSettings() { lossesOfSettings += 1 }
  mutating func receive(ping: UInt64, isAcknowledgement: Bool, _ origin: FrameOrigin) { pings.append(ping) }
  mutating func receive(_ violation: Violation, _ origin: FrameOrigin) { violations.append(violation) }

  mutating func receive(missing origin: FrameOrigin, losesFrames: Bool, losesTable: Bool) {
    missing.append((origin.offset..<origin.offset + origin.length, losesTable))
  }

  mutating func receive(unread cause: FrameReader.UnreadCause, _ origin: FrameOrigin) {
    unread.append((cause, origin.offset..<origin.offset + origin.length))
  }

  mutating func closed(_ place: StreamPlace, _ reason: StreamEnd) {
    closed[place.stream] = reason
    slots[place.slot] = nil
  }
}

/// Each field as `name: value`, with `?` for what is not known.
func texts(_ list: FieldList) -> [String] {
  list.fields.map { field in
    let name = field.isNameKnown ? String(decoding: Array(copying: list.name(of: field)), as: UTF8.self) : "?"
    let value = field.isValueKnown ? String(decoding: Array(copying: list.value(of: field)), as: UTF8.self) : "?"
    return "\(name): \(value)"
  }
}

/// What a test expects of a place in the input.
func arrival(_ packet: Int) -> Arrival { Arrival(time: Int64(packet) * 1_000_000, packet: packet) }

extension Array where Element == UInt8 {
  init(hex: String) {
    let digits = [UInt8](hex.utf8)
    self = stride(from: 0, to: digits.count - 1, by: 2).compactMap {
      UInt8(String(decoding: digits[$0...$0 + 1], as: UTF8.self), radix: 16)
    }
  }

  var hex: String { map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined() }
}

/// Writes frames into an array.
func frames(_ write: (inout ByteWriter) -> Void) -> [UInt8] {
  var writer = ByteWriter(capacity: 256)
  write(&writer)
  return Array(copying: writer.bytes)
}
