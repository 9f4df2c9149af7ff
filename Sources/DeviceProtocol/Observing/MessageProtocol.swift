import Bytes

/// A protocol of messages behind lengths.
public enum MessageProtocol: String, Sendable, CaseIterable {
  /// Between the simulated gateway and simulated devices.
  case devices
  /// Between a server of local push and its clients.
  case localPush = "local_push"
}

/// A message of either protocol.
public enum ObservedMessage: Sendable, Equatable {
  case device(DeviceMessage)
  case localPush(LocalPushMessage)
}

extension MessageProtocol {
  /// The protocol of a direction, by its first bytes.
  public enum Verdict: Sendable, Equatable {
    /// It is neither, or nothing proves that it is one.
    case no
    /// Later bytes may tell.
    case needsMore
    case yes(MessageProtocol)
  }

  /// Tells the protocol of a direction whose beginning was recorded by its first message.
  ///
  /// Only a whole message with members of one protocol alone is taken for it: `offline` and `refused` of the device
  /// channel have none that others could not have, too.
  ///
  /// - Parameters:
  ///   - bytes: the first bytes of the direction. Linear in their number.
  ///   - longestBody: the longest body in bytes, at least 2.
  ///   - isFinal: no more bytes come, so the verdict is never `needsMore`.
  public static func recognition(of bytes: RawSpan, longestBody: Int = 64 << 10, isFinal: Bool) -> Verdict {
    var framing = MessageFraming(longestBody: longestBody)
    let range: Range<Int>?
    do { range = try framing.next(bytes) } catch { return .no }
    guard let range else { return isFinal || !mayBecomeObject(bytes) ? .no : .needsMore }
    let body = bytes.extracting(range)
    var reader = ObservedMessageReader()
    let device = framing.order == .bigEndian ? try? reader.read(body, as: .devices) : nil
    let localPush = try? reader.read(body, as: .localPush)
    switch (device, localPush) {
    case (.device(let message)?, nil): return message.isOfOneProtocol ? .yes(.devices) : .no
    case (nil, .localPush?): return .yes(.localPush)
    default: return .no
    }
  }

  /// The longest number, literal or character in bytes that may be cut.
  private static let longestLiteral = 32

  /// Whether the body of a message that is not whole has no fault so far.
  private static func mayBecomeObject(_ bytes: RawSpan) -> Bool {
    guard bytes.byteCount > MessageFraming.headerLength else { return true }
    var tape = JSONTape()
    let body = bytes.extracting(MessageFraming.headerLength..<bytes.byteCount)
    // White space may follow an object.
    guard let fault = tape.read(body) else { return true }
    // Where a character or a literal is cut, the fault is at it.
    return fault.problem == .truncated || body.byteCount - fault.offset < longestLiteral
  }
}

extension DeviceMessage {
  /// Whether an object with these members is a message of the device channel and not of anything else.
  fileprivate var isOfOneProtocol: Bool {
    switch self {
    case .register, .registered, .online, .deliver, .acknowledge, .tokenChanged: true
    case .offline, .refused: false
    }
  }
}

/// Reads messages of both protocols. Its memory is reused for the next one.
struct ObservedMessageReader: Sendable {
  private var devices = DeviceMessageReader()
  private var localPush = LocalPushReader()

  mutating func read(_ body: RawSpan, as kind: MessageProtocol) throws(MessageError) -> ObservedMessage {
    switch kind {
    case .devices: .device(try devices.read(body))
    case .localPush: .localPush(try localPush.read(body))
    }
  }
}
