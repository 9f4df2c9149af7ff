import BinaryProtocol
import Bytes
import Measurement
import NIOCore
import Synchronization
import TLSTransport

/// The state shared by all connections of a simulator; immutable or thread-safe.
final class SimulatorContext: Sendable {
  let options: SimulatorOptions
  /// Changed by `change`, which tells the loops.
  let conduct: Mutex<Conduct>
  let store: StoredNotifications
  /// The registered devices; `nil`: there is no device channel.
  let devices: DeviceDirectory?
  /// The server of local push; `nil`: there is none.
  let localPush: LocalPushCenter?
  let admission: Admission
  let feedbackList: FeedbackList
  let log: EventLog?
  /// `nil`: nobody watches the connections.
  let observer: ConnectionObserver?
  let list: ConnectionList
  let providerTokens: ProviderTokenBook
  /// The channels of broadcasts; `nil`: nobody manages any.
  let broadcastChannels: BroadcastChannels?
  let wallClock: WallClock
  let started: Int64
  private let numbers = Atomic<UInt64>(0)
  private let open = Atomic<Int>(0)
  let memory: ConnectionMemory
  let unfinishedFrames: UnfinishedFrames

  init(
    _ options: SimulatorOptions, feedbackList: FeedbackList, log: EventLog?,
    observer: ConnectionObserver? = nil, deviceFile: DeviceFile? = nil, wallClock: WallClock = .system
  ) {
    self.options = options
    conduct = Mutex(Conduct(options.behavior, options.devices))
    var tellOutcomes: (@Sendable ([DeviceOutcome]) -> Void)?
    if let observer {
      tellOutcomes = { outcomes in
        observer(ObservedEvent(connection: 0, time: wallClock.nanoseconds(), change: .devices(outcomes)))
      }
    }
    store = StoredNotifications(options.offline, observer: tellOutcomes)
    admission = Admission(options.behavior.connection)
    devices = options.deviceChannel.map {
      DeviceDirectory($0, seed: options.behavior.seed, file: deviceFile, observer: tellOutcomes)
    }
    localPush = options.localPush.map {
      LocalPushCenter($0, seed: options.behavior.seed, start: wallClock.nanoseconds())
    }
    memory = ConnectionMemory(options)
    unfinishedFrames = UnfinishedFrames(limit: options.maximumMemory)
    self.feedbackList = feedbackList
    self.log = log
    self.observer = observer
    list = ConnectionList(maximum: options.maximumListedConnections)
    providerTokens = ProviderTokenBook(limit: options.http2?.maximumListedTokens ?? 0)
    broadcastChannels = options.channels.flatMap { _ in options.http2 }.map {
      BroadcastChannels(
        maximumOfApp: $0.maximumChannelsOfApp, maximum: $0.maximumChannels, seed: options.behavior.seed)
    }
    self.wallClock = wallClock
    started = wallClock.nanoseconds()
  }

  /// The reason why a connection is closed as soon as it is accepted, by its name in records.
  enum ExceededLimit: String, Error {
    case connections = "too_many_connections"
    case memory = "too_much_memory"
  }

  /// A number for a new connection, from 1. Call `ended` when it closes.
  func begin() throws(ExceededLimit) -> UInt64 {
    guard open.wrappingAdd(1, ordering: .relaxed).newValue <= options.maximumConnections else {
      open.wrappingSubtract(1, ordering: .relaxed)
      throw .connections
    }
    guard memory.take(memory.perConnection) else {
      ended()
      throw .memory
    }
    return numbers.wrappingAdd(1, ordering: .relaxed).newValue
  }

  /// The number of the latest connection; 0 before the first.
  var lastNumber: UInt64 { numbers.load(ordering: .relaxed) }

  func ended() {
    open.wrappingSubtract(1, ordering: .relaxed)
    memory.giveBack(memory.perConnection)
  }

  // MARK: the feedback list

  private let work = Mutex<(last: Int, tasks: [Int: Task<Void, Never>])>((0, [:]))
  private let failures = Mutex<[String]>([])

  /// Runs an operation on the list that must finish before the end.
  func run(_ body: @escaping @Sendable () async -> Void) {
    work.withLock { work in
      work.last += 1
      work.tasks[work.last] = Task { [key = work.last] in
        await body()
        self.work.withLock { $0.tasks[key] = nil }
      }
    }
  }

  /// Removes completely sent failures from a topic's list.
  func clear(topic: String, through sequence: Int64) {
    run {
      do { try await self.feedbackList.remove(topic: topic, through: sequence) } catch { self.note(error) }
    }
  }

  /// Waits for all pending operations.
  func settle() async {
    while let task = work.withLock({ $0.tasks.first?.value }) { await task.value }
  }

  /// Keeps a problem with the list for display; deduplicated and capped at 16.
  func note(_ error: any Error) {
    let text = "\(error)"
    failures.withLock { if $0.count < 16, !$0.contains(text) { $0.append(text) } }
  }

  func takeFailures() -> [String] {
    failures.withLock { failures in
      defer { failures = [] }
      return failures
    }
  }

  // MARK: the ledger

  /// Counts of loops and of the store at one time.
  struct Counts {
    var tally = Tally()
    var stored = OfflineStore.Counts()
    /// Of registered devices.
    var registered = RegisteredDevices.Counts()
    var localPush = LocalPushServer.Counts()
    /// Nanoseconds since 1970.
    var time: Int64
  }

  /// The ledger of the whole run so far, without the list of connections.
  func ledger(_ tally: Tally) -> Ledger {
    ledger(counts(tally), since: Counts(time: started))
  }

  /// The counts now.
  func counts(_ tally: Tally) -> Counts {
    Counts(
      tally: tally, stored: store.counts(now: milliseconds), registered: devices?.counts(now: milliseconds) ?? .init(),
      localPush: localPush?.counts(now: wallClock.nanoseconds()) ?? .init(), time: wallClock.nanoseconds())
  }

  /// The ledger of a part of the run, without the list of connections.
  func ledger(_ counts: Counts, since start: Counts) -> Ledger {
    var (tally, stored) = (counts.tally, counts.stored)
    tally -= start.tally
    stored.delivered -= start.stored.delivered
    stored.coalesced -= start.stored.coalesced
    stored.expired -= start.stored.expired
    stored.dropped -= start.stored.dropped
    var registered = counts.registered
    registered.subtract(start.registered)
    var ledger = Ledger()
    ledger.started = rfc3339(start.time)
    ledger.gateway = tally.gateway
    ledger.payloads = tally.payloads?.ledger
    if options.http2 != nil {
      var http2 = tally.http2
      let tokens = providerTokens.all
      (http2.providerTokens, http2.providerTokensOmitted) = (tokens.tokens, tokens.omitted)
      http2.providerTokenRenewals = tokens.renewals
      if let broadcastChannels {
        var channels = tally.served.channels.ledger
        (channels.registered, channels.keeping) = broadcastChannels.counts(now: milliseconds)
        http2.channels = channels
      }
      ledger.http2 = http2
    }
    ledger.devices.delivered =
      tally.accepted - tally.offline - tally.uninstalled + tally.served.accepted - tally.served.offline
      + stored.delivered + registered.delivered
    ledger.devices.coalesced = stored.coalesced + registered.coalesced
    ledger.devices.expired = stored.expired + registered.expired
    ledger.devices.dropped = stored.dropped + registered.dropped
    ledger.devices.stored = stored.stored + registered.stored
    if devices != nil {
      var channel = tally.deviceChannel
      (channel.registered, channel.online) = (registered.apps, registered.online)
      (channel.sent, channel.repeated) = (registered.sent, registered.repeated)
      (channel.unacknowledged, channel.restored) = (registered.unacknowledged, registered.restored)
      channel.unkept = registered.unkept
      (channel.accepted, channel.acknowledged) = (registered.accepted, registered.delivered)
      (channel.coalescedMs, channel.expiredMs) = (registered.coalescedAfter, registered.expiredAfter)
      ledger.devices.channel = channel
    }
    if localPush != nil {
      var localPush = counts.localPush
      localPush.subtract(start.localPush)
      ledger.localPush = localPush.ledger(options.localPush?.networks.map(\.name) ?? [])
    }
    ledger.devices.uninstalled = tally.uninstalled
    ledger.feedback.connections = tally.feedbackConnections
    ledger.feedback.handshakeFailures = tally.feedbackHandshakeFailures
    ledger.feedback.completed = tally.feedbackCompleted
    ledger.feedback.tuplesSent = tally.tuplesSent
    ledger.feedback.waiting = feedbackList.waiting
    ledger.feedback.lost = tally.feedbackLost
    return ledger
  }

  /// The final ledger.
  func closedLedger(_ tally: Tally) -> Ledger {
    var ledger = ledger(tally)
    (ledger.connections, ledger.connectionsOmitted) = list.all
    ledger.ended = rfc3339(wallClock.nanoseconds())
    return ledger
  }

  /// Whether tokens are those of the development environment.
  var isSandbox: Bool { options.http2?.isSandbox == true }

  /// UNIX time in ms, for expirations.
  var milliseconds: Int64 { wallClock.nanoseconds() / 1_000_000 }

  // MARK: random numbers

  /// The random numbers of a connection, derived from seed and number.
  func generator(_ connection: UInt64) -> SplitMix64 {
    // A different stream from that of its notification filter.
    SplitMix64(seed: options.behavior.seed ^ 0x6761_7465_7761_7921, stream: connection)
  }

  /// The random numbers of a connection's handshake, independent of its later ones.
  func handshakeGenerator(_ connection: UInt64) -> SplitMix64 {
    SplitMix64(seed: options.behavior.seed ^ 0x6861_6e64_7368_616b, stream: connection)
  }
}

extension SocketAddress {
  /// Address and port, as records show them.
  var text: String {
    guard let host = ipAddress, let port else { return "unknown" }
    return host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
  }
}
