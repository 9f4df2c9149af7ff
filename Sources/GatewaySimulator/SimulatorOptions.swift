import BinaryProtocol
import NIOCore
import TLSTransport

/// The options of a simulator. All memory limits are here, or in `rules.limits`.
public struct SimulatorOptions: Sendable {
  /// A host and a TCP port to listen on.
  public struct Address: Sendable, CustomStringConvertible {
    public var host: String
    /// 0 picks a free one.
    public var port: Int

    public init(host: String, port: Int) {
      self.host = host
      self.port = port
    }

    public var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }
  }

  /// `nil`: none.
  public var gateway: Address? = Address(host: "127.0.0.1", port: 2195)
  public var feedback: Address? = Address(host: "127.0.0.1", port: 2196)
  /// `nil`: plain TCP, and everybody pushes to `plainTopic`.
  public var tls: TLSContext?
  public var plainTopic = "com.example.app"
  public var rules = GatewaySession.Rules()
  public var behavior = Behavior()
  /// How payloads are judged; `nil`: not at all.
  public var payloads: PayloadScrutiny?
  public var devices = DevicePopulation()
  public var offline = OfflineStore.Options()
  /// Event loops; connections are spread over them. As many as there are cores.
  public var threads = System.coreCount
  /// How these get the processor, which they may share with the provider that is tested.
  public var scheduling = Scheduling.batch

  /// A TLS handshake has to be finished within this time.
  public var handshakeTimeout = Duration.seconds(10)
  /// A notification that has begun has to be complete within this time, or its connection is closed.
  public var frameTimeout = Duration.seconds(60)
  /// How long the gateway continues to read after an error response, to count discarded notifications.
  public var linger = Duration.seconds(5)
  /// A provider has to read the feedback list within this time without a pause.
  public var feedbackTimeout = Duration.seconds(60)
  /// Connections at a time, on both ports; further ones are closed at once.
  public var maximumConnections = 100_000
  /// Bytes that connections to both ports may hold together: 48 KiB for each with TLS, 8 KiB without. Further connections
  /// are closed at once.
  public var maximumConnectionMemory = 2 << 30
  /// Bytes beside it for all frames that have begun and are longer than 4 KiB so far. Above, the connection of the one that
  /// began first is closed.
  public var maximumMemory = 512 << 20
  /// Bytes of a connection that holds nothing else: TLS keeps some 45 KB for a peer that has said nothing yet.
  package var memoryPerConnection: Int { tls == nil ? 8 << 10 : 48 << 10 }
  /// Failures go to the feedback list. Without, they are counted only: nobody reads a list.
  public var keepsFeedback = true
  /// Connections that the ledger lists; the others are only counted.
  public var maximumListedConnections = 100_000

  public init() {}
}
