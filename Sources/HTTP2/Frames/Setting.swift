import Bytes

/// One setting of a SETTINGS frame (RFC 9113 section 6.5.1).
public struct Setting: Sendable, Hashable {
  static let length = 6

  /// The identifier; undefined ones are values, too.
  public var name: SettingName
  public var value: UInt32

  /// Makes a setting.
  public init(_ name: SettingName, _ value: UInt32) { (self.name, self.value) = (name, value) }

  init(_ payload: RawSpan, at offset: Int) {
    name = SettingName(rawValue: payload.uint16(at: offset))
    value = payload.uint32(at: offset + 2)
  }

  /// The rule that the value breaks.
  var fault: Rule? {
    switch name {
    case .enablePush where value > 1: .enablePush
    case .initialWindowSize where value > 0x7fff_ffff: .initialWindowSize
    case .maximumFrameSize where !(16_384...16_777_215).contains(value): .maximumFrameSize
    default: nil
    }
  }

  /// The settings of a payload in their order; a rest of fewer than six bytes is ignored.
  public static func list(_ payload: RawSpan) -> [Setting] {
    (0..<payload.byteCount / length).map { Setting(payload, at: $0 * length) }
  }
}

/// The identifier of a setting.
public struct SettingName: RawRepresentable, Sendable, Hashable, CustomStringConvertible {
  public let rawValue: UInt16
  public init(rawValue: UInt16) { self.rawValue = rawValue }

  public static let headerTableSize = SettingName(rawValue: 1)
  public static let enablePush = SettingName(rawValue: 2)
  public static let maximumConcurrentStreams = SettingName(rawValue: 3)
  public static let initialWindowSize = SettingName(rawValue: 4)
  public static let maximumFrameSize = SettingName(rawValue: 5)
  public static let maximumHeaderListSize = SettingName(rawValue: 6)

  private static let names: [UInt16: String] = [
    1: "HEADER_TABLE_SIZE", 2: "ENABLE_PUSH", 3: "MAX_CONCURRENT_STREAMS", 4: "INITIAL_WINDOW_SIZE",
    5: "MAX_FRAME_SIZE", 6: "MAX_HEADER_LIST_SIZE", 8: "ENABLE_CONNECT_PROTOCOL", 9: "NO_RFC7540_PRIORITIES",
  ]

  /// The name in the registry without `SETTINGS_`; the hexadecimal number of an undefined setting.
  public var description: String { Self.names[rawValue] ?? "0x" + String(rawValue, radix: 16) }
}

/// All settings of an endpoint that RFC 9113 defines, with their initial values (section 6.5.2).
public struct Settings: Sendable, Hashable {
  /// The largest dynamic table for field blocks that the endpoint receives, in bytes.
  public var headerTableSize = 4_096
  /// Whether the endpoint accepts PUSH_PROMISE.
  public var isPushEnabled = true
  /// The most streams that the other endpoint may have open; `nil` without a limit.
  public var maximumConcurrentStreams: Int?
  /// The window of each new stream in bytes.
  public var initialWindowSize = 65_535
  /// The longest payload of a frame that the endpoint receives, in bytes.
  public var maximumFrameSize = 16_384
  /// The largest field section, in bytes; advisory. `nil` without a limit.
  public var maximumHeaderListSize: Int?

  /// The initial values.
  public init() {}

  /// Applies one setting; undefined ones and invalid values change nothing.
  public mutating func apply(_ setting: Setting) {
    guard setting.fault == nil else { return }
    let value = Int(setting.value)
    switch setting.name {
    case .headerTableSize: headerTableSize = value
    case .enablePush: isPushEnabled = value == 1
    case .maximumConcurrentStreams: maximumConcurrentStreams = value
    case .initialWindowSize: initialWindowSize = value
    case .maximumFrameSize: maximumFrameSize = value
    case .maximumHeaderListSize: maximumHeaderListSize = value
    default: break
    }
  }
}
