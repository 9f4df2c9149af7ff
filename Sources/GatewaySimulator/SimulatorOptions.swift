import BinaryProtocol
import NIOCore
import TLSTransport

/// The options of a simulator. All memory limits are here, or in `rules.limits`.
public struct SimulatorOptions: Sendable {
  /// A host and a TCP port to listen on.
  public struct Address: Sendable, CustomStringConvertible {
    public var host: String
    /// 0: the system picks a free port.
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
  /// The HTTP/2 provider API; `nil`: none.
  public var http2: HTTP2Service?
  /// The management of the channels of broadcasts, beside `http2`; `nil`: there is none, and broadcasts are not enabled.
  public var channels: SimulatorOptions.Address?
  /// The channel of simulated devices; `nil`: there is none.
  public var deviceChannel: DeviceChannel?
  /// The server of local push; `nil`: there is none.
  public var localPush: LocalPushService?
  /// `nil`: plain TCP, and everybody pushes to `plainTopic`.
  public var tls: TLSContext?
  public var plainTopic = "com.example.app"
  public var rules = GatewaySession.Rules()
  public var behavior = Behavior()
  /// How payloads are judged; `nil`: they are not.
  public var payloads: PayloadScrutiny?
  public var devices = DevicePopulation()
  public var offline = OfflineStore.Options()
  /// The number of event loops, over which connections are spread. The default is one per core.
  public var threads = System.coreCount
  /// How the event loops' threads are scheduled: they may share processors with the provider under test.
  public var scheduling = Scheduling.batch

  /// A TLS handshake has to be finished within this time.
  public var handshakeTimeout = Duration.seconds(10)
  /// A notification that has begun has to be complete within this time, or its connection is closed.
  public var frameTimeout = Duration.seconds(60)
  /// How long the gateway continues to read after an error response, to count discarded notifications.
  public var linger = Duration.seconds(5)
  /// A provider has to read the feedback list within this time without a pause.
  public var feedbackTimeout = Duration.seconds(60)
  /// Simultaneous connections, on both ports together; further connections are closed at once.
  public var maximumConnections = 100_000
  /// Bytes that connections to both ports may hold together: 48 KiB for each with TLS, 8 KiB without. Further connections
  /// are closed at once.
  public var maximumConnectionMemory = 2 << 30
  /// Bytes, besides `maximumConnectionMemory`, for all unfinished frames longer than 4 KiB. Above, the connection whose
  /// frame began first is closed.
  public var maximumMemory = 512 << 20
  /// Bytes of a connection without unfinished frames: TLS needs some 45 KB for a peer that has sent nothing yet.
  package var memoryPerConnection: Int { tls == nil && http2?.tls == nil ? 8 << 10 : 48 << 10 }
  /// Whether failures go to the feedback list. Otherwise they are only counted, because nobody reads a list.
  public var keepsFeedback = true
  /// Connections that the ledger lists; further ones are only counted.
  public var maximumListedConnections = 100_000
  /// Devices that may be changed while the gateway runs.
  public var maximumChangedDevices = 100_000

  public init() {}
}
