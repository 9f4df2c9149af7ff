import Bytes

/// One direction of a connection: its frames, the field block that has begun, and what its receiver allows.
struct Direction: Sendable {
  /// A field block whose last frame has not come.
  struct PendingBlock: Sendable {
    var stream: UInt32
    var endsStream: Bool
    /// The stream that a PUSH_PROMISE promises.
    var isPromise: Bool
    var origin: FrameOrigin
    var continuations = 0
    /// The limit that it exceeds: it is not kept then.
    var excess: Rule?
  }

  /// Limits that one side sets the other.
  struct Allowance: Sendable {
    var payload = 16_384
    var window = 65_535
    /// The streams that may be open at once.
    var streams = Int.max

    init() {}
  }

  let side: FrameReader.Side
  var reader: FrameReader
  var decoder: HPACKDecoder
  var fields = FieldList()
  var pending: PendingBlock?
  /// The bytes of the pending block.
  var block: [UInt8] = []
  /// The number of times that frames may have been lost, the beginning included.
  var losses: Int
  /// Settings that this side announced and the other has not acknowledged.
  var announced: [[Setting]] = []
  /// Settings of this side that the other has acknowledged.
  var inForce = Settings()
  /// Whether `inForce` is certain: no SETTINGS and no acknowledgement can be lost.
  var areSettingsKnown: Bool
  /// What the other side allows this one, as far as it can know; `nil` if SETTINGS may be missing. Until it has
  /// acknowledged new settings, it may keep to the old ones as well.
  var allowed: Allowance? = Allowance()
  /// The bytes of DATA on the connection, minus the increments of its window.
  var windowUsed = 0
  /// Whether a frame was read.
  var hasFrames = false
  /// Whether the direction has ended.
  var hasEnded = false

  init(_ side: FrameReader.Side, isFromStart: Bool, _ limits: ConnectionReader.Limits) {
    self.side = side
    reader = FrameReader(side, isAligned: isFromStart, limits: limits.frames)
    decoder = HPACKDecoder(isAtStart: isFromStart, limits: limits.fields)
    losses = isFromStart ? 0 : 1
    areSettingsKnown = isFromStart
    if !isFromStart { allowed = nil }
  }

  /// Whether every frame up to here was read.
  var isIntact: Bool { losses == 0 }

  var heldBytes: Int {
    reader.heldBytes + decoder.heldBytes + fields.heldBytes + block.count
      + announced.reduce(0) { $0 + $1.count } * MemoryLayout<Setting>.stride
  }

  /// Frees memory that is ready for what comes.
  mutating func freeSpare() {
    fields = FieldList()
    if pending == nil { block = [] }
    reader.freeSpare()
  }

  /// What this side allows the other, before and after the announced settings are acknowledged.
  var allowedToOther: Allowance? {
    guard areSettingsKnown else { return nil }
    var most = Allowance()
    (most.payload, most.window) = (inForce.maximumFrameSize, inForce.initialWindowSize)
    most.streams = inForce.maximumConcurrentStreams ?? .max
    for setting in announced.joined() where setting.fault == nil {
      switch setting.name {
      case .maximumFrameSize: most.payload = max(most.payload, Int(setting.value))
      case .initialWindowSize: most.window = max(most.window, Int(setting.value))
      case .maximumConcurrentStreams: most.streams = max(most.streams, Int(setting.value))
      default: break
      }
    }
    return most
  }

  /// Applies the settings that the other side acknowledges, and returns them; `nil` if none wait for it.
  mutating func applyAnnounced() -> [Setting]? {
    guard !announced.isEmpty else { return nil }
    let settings = announced.removeFirst()
    for setting in settings { inForce.apply(setting) }
    return settings
  }

  /// Notes that SETTINGS of either side, or their acknowledgements, may be missing.
  mutating func missSettings() {
    areSettingsKnown = false
    allowed = nil
    decoder.missSettings()
  }
}
