import BinaryProtocol
import PacketCapture
import Records
import TLSDecryption

/// Options of a dissection, and its memory limits.
public struct DissectionOptions: Sendable {
  /// The service of a server port. Connections on other ports are recognised by their first bytes.
  public var ports: [UInt16: Service]
  /// The contents of a raw dump; `nil`: recognised by its bytes.
  public var dumpContents: DumpContents?
  public var limits: ProtocolLimits
  public var capture: CaptureOptions
  public var tls: TLSLimits
  /// The number of key log lines used of those embedded in a capture file; further lines are ignored.
  public var maximumKeyLogLines: Int
  /// Runs of identifiers that are remembered per connection, see `BinarySession`.
  public var maximumIdentifierRuns: Int
  /// Packets per connection whose time is remembered for an error's latency; an older notification's has none.
  public var maximumWriteTimes: Int
  /// Error responses of one connection that are held until their counts are final; further ones are written with the
  /// counts so far.
  public var maximumHeldResponses: Int
  /// Bytes of memory for everything that is incomplete: packets to be reordered (half of it at most), out-of-order TCP
  /// segments, and TLS that waits for the other direction or for secrets (an eighth each); the rest is for what all
  /// connections have begun and not finished: frames, TLS records, error responses and what resolves these. When it is
  /// exceeded, connections that hold more than half the average drop what they hold: those without traffic since the
  /// last check first, then the oldest.
  public var maximumMemory = 512 << 20

  /// The options with each memory limit within its share of `maximumMemory`.
  var divided: DissectionOptions {
    var options = self
    func take(_ part: Int, of place: WritableKeyPath<DissectionOptions, Int>) {
      options[keyPath: place] = min(options[keyPath: place], part)
      options.maximumMemory -= options[keyPath: place]
    }
    if capture.reorderWindow != nil { take(maximumMemory / 2, of: \.capture.maximumReorderBytes) }
    take(maximumMemory / 8, of: \.capture.reassembly.maximumTotalBufferedBytes)
    take(maximumMemory / 8, of: \.tls.maximumTotalHeldBytes)
    return options
  }
  /// Decoder threads, beside one reader. Records do not depend on the number.
  public enum Threads: Sendable {
    case exactly(Int)
    /// At most this many, and only while they are expected to save more time than they cost.
    case upTo(Int)

    var maximum: Int {
      switch self {
      case .exactly(let count), .upTo(let count): count
      }
    }
  }

  public var threads = Threads.exactly(1)
  /// The least work at hand, in events or kilobytes of them, for which lanes are used; with less, one thread does it
  /// all.
  package var leastWeightForThreads = 64
  /// Ranges of fates kept from a first pass for a second one, see `FateIndex`.
  public var maximumFateRanges: Int

  public init(
    ports: [UInt16: Service] = Service.ofPorts, dumpContents: DumpContents? = nil,
    limits: ProtocolLimits = ProtocolLimits(),
    capture: CaptureOptions = CaptureOptions(), tls: TLSLimits = TLSLimits(), maximumKeyLogLines: Int = 1 << 24,
    maximumIdentifierRuns: Int = 32_768, maximumWriteTimes: Int = 1_024,
    maximumHeldResponses: Int = 1_024, maximumFateRanges: Int = FateIndex.usualMaximumRanges
  ) {
    self.ports = ports
    self.dumpContents = dumpContents
    self.limits = limits
    self.capture = capture
    self.tls = tls
    self.maximumKeyLogLines = maximumKeyLogLines
    self.maximumIdentifierRuns = maximumIdentifierRuns
    self.maximumWriteTimes = maximumWriteTimes
    self.maximumHeldResponses = maximumHeldResponses
    self.maximumFateRanges = maximumFateRanges
  }
}

/// Which direction of which service a raw dump holds.
public enum DumpContents: String, Sendable, CaseIterable {
  /// Provider to gateway.
  case gateway
  /// Gateway to provider.
  case responses
  /// Feedback service to provider.
  case feedback
}
