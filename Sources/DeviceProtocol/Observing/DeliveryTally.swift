/// The notifications of one connection of the device channel, and what the recording proves about their
/// acknowledgements.
///
/// A device acknowledges all notifications of an app up to a sequence, and sequences grow. So the counts do not depend on
/// the order in which the two directions were recorded.
public struct DeliveryTally: Sendable {
  /// Numbers of notifications: `deliveries` is the sum of `acknowledged`, `unacknowledged`, `open` and `notGrowing`, and
  /// before the end of those that wait.
  public struct Counts: Sendable, Equatable {
    /// Notifications that the gateway sent.
    public var deliveries = 0
    /// The device has acknowledged them, or has said that it has them.
    public var acknowledged = 0
    /// The device closed its direction, all of which was recorded, without an acknowledgement.
    public var unacknowledged = 0
    /// No acknowledgement was recorded, but the recording may lack it.
    public var open = 0
    /// The sequence is not above that of an earlier notification of the app, which is an error of the gateway.
    public var notGrowing = 0
    /// Those that waited at the gateway.
    public var stored = 0
    /// Those that were sent on an earlier connection.
    public var repeated = 0
  }

  /// The most that is kept; anything beyond stays open.
  public struct Limits: Sendable {
    /// Tokens whose sequences are compared.
    public var tokens = 100_000
    /// Notifications that wait for an acknowledgement.
    public var waiting = 1_000_000

    public init() {}
  }

  private struct App {
    var delivered: UInt64 = 0
    var acknowledged: UInt64 = 0
    /// Sequences above `acknowledged`, which grow; those before `first` are done.
    var waiting: [UInt64] = []
    var first = 0
  }

  public private(set) var counts = Counts()
  /// Notifications that wait for an acknowledgement.
  public private(set) var waiting = 0
  private let limits: Limits
  private var apps: [[UInt8]: App] = [:]
  private var lacksDevice = false

  public init(limits: Limits = Limits()) { self.limits = limits }

  /// Tokens for which notifications or acknowledgements were seen, up to the limit.
  public var tokens: Int { apps.count }

  /// Notes a message of either direction. Amortized O(1).
  ///
  /// - Parameter isCounted: whether a notification is counted. Acknowledgements always take effect.
  public mutating func note(_ message: DeviceMessage, isCounted: Bool = true) {
    switch message {
    case .deliver(let delivery): if isCounted { note(delivery) }
    case .acknowledge(let token, _, let sequence): acknowledge(token, sequence)
    // A device that says once more that it is online says what it has.
    case .online(let online): for app in online.apps { acknowledge(app.token, app.received) }
    case .register, .registered, .tokenChanged, .offline, .refused: break
    }
  }

  /// Notes that bytes of the device are missing or could not be read: they may have been acknowledgements.
  public mutating func noteLossOfDevice() { lacksDevice = true }

  /// Decides about what waits.
  ///
  /// - Parameter isDeviceEndRecorded: the recording has the end of the device's direction.
  public mutating func finish(isDeviceEndRecorded: Bool) {
    if isDeviceEndRecorded, !lacksDevice { counts.unacknowledged += waiting } else { counts.open += waiting }
    waiting = 0
    apps = apps.mapValues { App(delivered: $0.delivered, acknowledged: $0.acknowledged) }
  }

  private mutating func note(_ delivery: DeviceMessage.Delivery) {
    counts.deliveries += 1
    if delivery.isStored { counts.stored += 1 }
    if delivery.isRepeated { counts.repeated += 1 }
    guard apps[delivery.token] != nil || apps.count < limits.tokens else {
      counts.open += 1
      return
    }
    var app = apps[delivery.token] ?? App()
    // The list has to be held once only, or it is copied.
    apps[delivery.token] = nil
    defer { apps[delivery.token] = app }
    guard delivery.sequence > app.delivered else {
      counts.notGrowing += 1
      return
    }
    app.delivered = delivery.sequence
    if delivery.sequence <= app.acknowledged {
      counts.acknowledged += 1
      return
    }
    guard waiting < limits.waiting else {
      counts.open += 1
      return
    }
    app.waiting.append(delivery.sequence)
    waiting += 1
  }

  private mutating func acknowledge(_ token: [UInt8], _ sequence: UInt64) {
    guard apps[token] != nil || apps.count < limits.tokens else { return }
    var app = apps[token] ?? App()
    apps[token] = nil
    defer { apps[token] = app }
    app.acknowledged = max(app.acknowledged, sequence)
    let before = app.first
    while app.first < app.waiting.count, app.waiting[app.first] <= app.acknowledged { app.first += 1 }
    counts.acknowledged += app.first - before
    waiting -= app.first - before
    if app.first == app.waiting.count { (app.waiting, app.first) = ([], 0) }
    if app.first > 1024, app.first > app.waiting.count / 2 {
      app.waiting.removeFirst(app.first)
      app.first = 0
    }
  }
}
