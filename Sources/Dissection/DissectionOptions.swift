import BinaryProtocol
import DeviceProtocol
import HTTP2
import PacketCapture
import ProviderAPI
import Records
import TLSDecryption

/// Options of a dissection, and the limits of its memory.
public struct DissectionOptions: Sendable {
  /// The service of a server port. Connections on other ports are recognised by their first bytes.
  public var ports: [UInt16: Service]
  /// Server ports whose connections are HTTP/2, whatever their first bytes.
  public var http2Ports: Set<UInt16> = []
  /// Server ports whose connections are of the device channel or of local push, whatever their first bytes.
  public var messagePorts: [UInt16: MessageProtocol] = [:]
  /// The limits on connections over HTTP/2.
  public var http2 = ProviderSession.Limits()
  /// The contents of a raw dump; `nil`: recognised by its bytes.
  public var dumpContents: DumpContents?
  /// The limits on lengths of frames and items.
  public var limits: ProtocolLimits
  /// The limits on packets and TCP streams.
  public var capture: CaptureOptions
  /// The limits on TLS connections.
  public var tls: TLSLimits
  /// The number of key log lines used of those embedded in a capture file; further lines are ignored.
  public var maximumKeyLogLines: Int
  /// Runs of consecutive identifiers that are kept per connection, see `BinarySession`.
  public var maximumIdentifierRuns: Int
  /// Packets per connection whose times are kept for the latency of error responses; a response that names an older
  /// notification has no latency.
  public var maximumWriteTimes: Int
  /// Error responses of one connection that are held until the counts in these are final; further responses are passed
  /// on with the counts so far.
  public var maximumHeldResponses: Int
  /// Bytes of memory for everything that is incomplete: packets to be reordered (half of it at most), out-of-order TCP
  /// segments, and TLS that waits for the other direction or for secrets (an eighth each); the rest is for unfinished
  /// frames, TLS records and error responses of all connections, and for the data that resolves error responses. When
  /// the limit is exceeded, connections that hold more than half the average drop what they hold: connections without
  /// traffic since the last check first, then the oldest.
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
  /// The number of decoder threads, beside one thread that reads. Records do not depend on the number.
  public enum Threads: Sendable {
    /// A fixed number, at least 1.
    case exactly(Int)
    /// At most this many, and several only while more time is saved than lost by using several.
    case upTo(Int)

    var maximum: Int {
      switch self {
      case .exactly(let count), .upTo(let count): count
      }
    }
  }

  /// The number of decoder threads.
  public var threads = Threads.exactly(1)
  /// The least waiting work, in events or kilobytes of events, for which lanes are used; with less, one thread does all
  /// work.
  package var leastWeightForThreads = 64
  /// Ranges of fates kept from a first pass for a second one, see `FateIndex`.
  public var maximumFateRanges: Int

  /// Makes options; the properties describe the parameters.
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

/// The service and the direction of the bytes of a raw dump.
public enum DumpContents: String, Sendable, CaseIterable {
  /// Provider to gateway.
  case gateway
  /// Gateway to provider.
  case responses
  /// Feedback service to provider.
  case feedback
  /// Provider to gateway over HTTP/2, without TLS.
  case http2
  /// Gateway to provider over HTTP/2, without TLS.
  case http2Responses = "http2-responses"
}

extension DumpContents {
  /// Whether the provider sent the bytes.
  var isFromClient: Bool { self == .gateway || self == .http2 }
}
