import Bytes

/// What a request is for, by its method and path.
public enum RequestTarget: Sendable, Hashable {
  /// `/3/device/TOKEN`: a notification to one device.
  case device
  /// `/4/broadcasts/apps/BUNDLE`: a notification to the devices of a channel.
  case broadcast
  /// A request of channel management.
  case channel(ChannelAction)
  /// A notification by its fields, to a path that is none of these.
  case badPath
  /// Anything else.
  case other
  /// The path is not known.
  case unknown

  /// Whether it is a notification.
  public var isNotification: Bool { self == .device || self == .broadcast || self == .badPath }
}

/// The actions of channel management (Apple, "Sending channel management requests").
public enum ChannelAction: String, Sendable, Hashable, CaseIterable {
  case create, read, delete
  case readAll = "read_all"
}

extension RequestTarget {
  /// Reads a path.
  ///
  /// - Parameters:
  ///   - bytes: the bytes of the request.
  ///   - range: the range of the path.
  ///   - method: the range of the method; `nil` if it is not known. Notifications have any: a wrong one is a reason to reject them.
  /// - Returns: what the request is for, and the range in the path of the token or of the bundle identifier.
  package static func read(
    _ bytes: RawSpan, path range: Range<Int>, method: Range<Int>?
  ) -> (target: RequestTarget, name: Range<Int>) {
    let path = bytes.extracting(range)
    let device: StaticString = "/3/device/"
    if path.holds(device, at: 0) {
      return (.device, device.utf8CodeUnitCount..<path.byteCount)
    }
    let broadcast: StaticString = "/4/broadcasts/apps/"
    if path.holds(broadcast, at: 0) {
      return (.broadcast, broadcast.utf8CodeUnitCount..<path.byteCount)
    }
    let apps: StaticString = "/1/apps/"
    guard path.holds(apps, at: 0) else { return (.other, 0..<0) }
    let start = apps.utf8CodeUnitCount
    guard let end = path.firstOffset(of: UInt8(ascii: "/"), from: start) else { return (.other, 0..<0) }
    let rest = path.extracting(end..<path.byteCount)
    if rest.byteCount == 13, rest.holds("/all-channels", at: 0) { return (.channel(.readAll), start..<end) }
    guard rest.byteCount == 9, rest.holds("/channels", at: 0), let method else { return (.other, 0..<0) }
    let verb = bytes.extracting(method)
    if verb.holds("POST", at: 0) { return (.channel(.create), start..<end) }
    if verb.holds("GET", at: 0) { return (.channel(.read), start..<end) }
    if verb.holds("DELETE", at: 0) { return (.channel(.delete), start..<end) }
    return (.other, 0..<0)
  }
}
