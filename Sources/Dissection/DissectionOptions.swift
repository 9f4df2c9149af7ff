import BinaryProtocol
import PacketCapture
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
  /// Lines with secrets of a key log that a capture file holds; further ones are not used.
  public var maximumKeyLogLines: Int
  /// Runs of identifiers that are remembered per connection, see `BinarySession`.
  public var maximumIdentifierRuns: Int
  /// Packets per connection whose time is remembered for an error's latency; an older notification's has none.
  public var maximumWriteTimes: Int
  /// Error responses of one connection whose final counts are waited for; further ones are written as they stand.
  public var maximumHeldResponses: Int
  /// Bytes of memory for everything that waits for more: packets for their turn (half of it at most), bytes for those
  /// before them and TLS for the other direction or for secrets (an eighth each); and the rest for what all connections
  /// have begun and not finished: frames, TLS records, error responses, and what these are resolved with. Above, of the
  /// connections that hold more than their share the oldest give theirs up, those first that were silent since the last
  /// look.
  public var maximumMemory = 512 << 20

  /// The limits of each within that of all.
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
    /// At most so many, where they are expected to save more time than they cost.
    case upTo(Int)

    var maximum: Int {
      switch self {
      case .exactly(let count), .upTo(let count): count
      }
    }
  }

  public var threads = Threads.exactly(1)
  /// With less at hand one thread does it all: in events, or kilobytes of them.
  package var leastWeightForThreads = 64
  /// Ranges of fates kept from a first pass for a second one, see `FateIndex`.
  public var maximumFateRanges: Int

  public static let knownPorts: [UInt16: Service] = [2195: .gateway, 2196: .feedback]

  public init(
    ports: [UInt16: Service] = knownPorts, dumpContents: DumpContents? = nil, limits: ProtocolLimits = ProtocolLimits(),
    capture: CaptureOptions = CaptureOptions(), tls: TLSLimits = TLSLimits(), maximumKeyLogLines: Int = 1 << 24,
    maximumIdentifierRuns: Int = 32_768, maximumWriteTimes: Int = 1_024,
    maximumHeldResponses: Int = 1_024, maximumFateRanges: Int = 1 << 22
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
