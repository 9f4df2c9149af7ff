/// Packets that were to be captured and are not in the file, as whoever wrote it counted them.
public struct CaptureLoss: Sendable, Equatable {
  /// The name of the interface; `nil` when the file does not tell.
  public var interface: String?
  /// Dropped by the interface, for lack of resources.
  public var interfaceDropped: Int?
  /// Dropped by the operating system, before they reached the program that captured.
  public var systemDropped: Int?
  /// Packets that were received, dropped ones perhaps among them.
  public var received: Int?
  /// When the capture began that the counts are of: files of a ring have the same, and counts that go on.
  public var started = Timestamp.none

  package init(
    interface: String? = nil, interfaceDropped: Int? = nil, systemDropped: Int? = nil, received: Int? = nil,
    started: Timestamp = .none
  ) {
    self.interface = interface
    self.interfaceDropped = interfaceDropped
    self.systemDropped = systemDropped
    self.received = received
    self.started = started
  }

  public var dropped: Int {
    let (sum, overflow) = (interfaceDropped ?? 0).addingReportingOverflow(systemDropped ?? 0)
    return overflow ? .max : sum
  }
}

/// The latest counts of each interface of a file.
struct CaptureLosses {
  /// Interfaces whose counts are kept; a hostile file has any number.
  private static let limit = 1_024

  private var ended: [CaptureLoss] = []
  /// Of the section's interfaces, by their number.
  private var current: [Int: CaptureLoss] = [:]

  /// Those with drops.
  var all: [CaptureLoss] {
    (ended + current.sorted { $0.key < $1.key }.map(\.value)).filter { $0.dropped > 0 }
  }

  mutating func note(_ loss: CaptureLoss, of interface: Int) {
    if current[interface] != nil || ended.count + current.count < Self.limit { current[interface] = loss }
  }

  /// A section begins: its interfaces are others.
  mutating func endSection() {
    ended = all
    current = [:]
  }
}
