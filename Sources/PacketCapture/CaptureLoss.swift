/// Packets that were not captured although they should have been, as counted by the capturing program.
public struct CaptureLoss: Sendable, Equatable {
  /// The name of the interface; `nil` if the file does not have it.
  public var interface: String?
  /// Packets dropped by the interface, for lack of resources.
  public var interfaceDropped: Int?
  /// Packets dropped by the operating system before they reached the capturing program.
  public var systemDropped: Int?
  /// Packets received; dropped packets may be included.
  public var received: Int?
  /// The start of the capture to which the counts refer. The files of a ring buffer share it, and their counts
  /// continue.
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

  /// All dropped packets, of the interface and of the operating system. Saturates.
  public var dropped: Int {
    let (sum, overflow) = (interfaceDropped ?? 0).addingReportingOverflow(systemDropped ?? 0)
    return overflow ? .max : sum
  }
}

/// The latest counts of each interface of a file.
struct CaptureLosses {
  /// The most interfaces whose counts are kept: a hostile file may have any number.
  private static let limit = 1_024

  private var ended: [CaptureLoss] = []
  /// The counts of the current section's interfaces, by interface number.
  private var current: [Int: CaptureLoss] = [:]

  /// The interfaces that dropped packets.
  var all: [CaptureLoss] {
    (ended + current.sorted { $0.key < $1.key }.map(\.value)).filter { $0.dropped > 0 }
  }

  mutating func note(_ loss: CaptureLoss, of interface: Int) {
    if current[interface] != nil || ended.count + current.count < Self.limit { current[interface] = loss }
  }

  /// Ends a section: the next one has other interfaces.
  mutating func endSection() {
    ended = all
    current = [:]
  }
}
