/// One or more packets of a clear capture as a sortable row: the beginning of a connection, bytes of one end, or an
/// end's closing.
struct ClearRow: BitwiseCopyable {
  enum Kind: UInt8, BitwiseCopyable {
    case opened, data, closing
  }

  /// The first criteria of the capture's order: the file's number (0: none), then a time (`.min`: none).
  var file = 0
  var order = Int64.min
  var packet = 0
  var connection: Int
  /// The stream offset of the first byte.
  var offset = 0
  var time = Int64.min
  /// Bytes of the client that a response acknowledges; negative if bytes sent before the response do so.
  var acknowledged = -1
  /// The place of the row's bytes in the content store; -1 without bytes.
  var place = -1
  var kind: Kind
  var isFromClient = true
  var isReset = false

  init(_ kind: Kind, connection: Int) {
    self.kind = kind
    self.connection = connection
  }
}

/// The order of the packets in the recording.
enum ClearOrder: RowOrder {
  typealias Row = ClearRow

  static func precedes(_ a: ClearRow, _ b: ClearRow) -> Bool {
    if a.file != b.file { return a.file < b.file }
    if a.order != b.order { return a.order < b.order }
    if a.packet != b.packet { return a.packet < b.packet }
    if a.connection != b.connection { return a.connection < b.connection }
    if a.kind != b.kind { return a.kind.rawValue < b.kind.rawValue }
    return a.offset < b.offset
  }
}
