import ArgumentParser
import Bytes
import CommandFiles
import DeviceProtocol
import GatewaySimulator
import TLSTransport

/// The provider's own server for devices without internet.
struct LocalPushOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Run the provider's own server where there is no internet (local push connectivity): its notification channel, which extensions connect to ('apnscope devices --local-push'). With the TLS of the gateway, or --plain. Documentation/local-push.md has the protocol.",
      valueName: "host:port"), transform: ListeningAddress.parse)
  var localPush: ListeningAddress?

  @Option(
    help: ArgumentHelp("Its control channel, which apps connect to.", valueName: "host:port"),
    transform: ListeningAddress.parse)
  var localPushControl: ListeningAddress?

  @Option(
    help: ArgumentHelp(
      "Send messages to users by chance, from those who are here: this many a second.", valueName: "rate"),
    transform: Rate.parse)
  var localPushRate: Rate?

  @Option(
    help: ArgumentHelp(
      "Share of them that are invitations to a call; the others are texts. Default: 0%.", valueName: "share"),
    transform: Share.parse)
  var localPushCalls: Share?

  @Option(
    help: ArgumentHelp(
      "Send the messages of this JSON Lines file: at_s, kind (text, invite or call_action), to, from, text or action. A user is a UUID, or the number of a device of 'apnscope devices'.",
      valueName: "file"), completion: .file())
  var localPushMessages: String?

  @Option("Time between heartbeats.", valueName: "time")
  var localPushHeartbeat = TimeSpan(.seconds(10))

  @Option("How long a request waits for its acknowledgement.", valueName: "time")
  var localPushTimeout = TimeSpan(.seconds(10))

  @Option(
    help: ArgumentHelp("Share of heartbeats that are not sent: a fault.", valueName: "share"), transform: Share.parse)
  var localPushLostHeartbeats: Share?

  @Option(
    help: ArgumentHelp(
      "At this time the server falls silent on this share of the open connections, and leaves them open: a fault, e.g. 30s:50%. Repeatable.",
      valueName: "time:share"), transform: LocalPushMoment.parseSilence)
  var localPushSilence: [LocalPushFaults.Silence] = []

  @Option(
    help: ArgumentHelp(
      "At this time the server ends, and listens again this much later: a fault, e.g. 30s:5s. Repeatable.",
      valueName: "time:time"), transform: LocalPushMoment.parseRestart)
  var localPushRestart: [LocalPushFaults.Restart] = []

  @Option(
    help: ArgumentHelp(
      "Requests on a connection that are not acknowledged; further messages are not sent.", valueName: "count"))
  var maxLocalPushUnacknowledged = 100

  @Option(
    help: ArgumentHelp("Users in a directory; those who came first are in it.", valueName: "count"))
  var maxLocalPushDirectory = 200

  func validate() throws {
    for (name, value) in [
      ("max-local-push-unacknowledged", maxLocalPushUnacknowledged),
      ("max-local-push-directory", maxLocalPushDirectory),
    ] where !(1...1_000_000).contains(value) {
      throw ValidationError("--\(name) must be 1 to 1M (got \(value)).")
    }
    for (name, time) in [("heartbeat", localPushHeartbeat), ("timeout", localPushTimeout)]
    where time.duration < .milliseconds(1) {
      throw ValidationError("--local-push-\(name) must be at least 1ms.")
    }
    if let localPushRate, localPushRate.perSecond > 1_000_000 {
      throw ValidationError("--local-push-rate must be at most 1M a second.")
    }
  }

  /// Requirements of options that a file of settings may meet instead of the command line.
  func requireCompanions() throws {
    let needs =
      localPushRate != nil || localPushMessages != nil || localPushLostHeartbeats != nil || !localPushSilence.isEmpty
      || !localPushRestart.isEmpty
    if localPush == nil, localPushControl == nil, needs {
      throw ValidationError(
        "--local-push-rate, --local-push-messages and the faults of local push need --local-push or --local-push-control."
      )
    }
    if localPushRate == nil, localPushCalls != nil {
      throw ValidationError("--local-push-calls needs --local-push-rate.")
    }
  }

  /// Reads the file of messages.
  ///
  /// - Parameter context: makes the TLS context; `nil` without TLS.
  func apply(to options: inout SimulatorOptions, _ context: () throws -> TLSContext?) throws {
    guard localPush != nil || localPushControl != nil else { return }
    var service = LocalPushService(notifications: localPush?.address, control: localPushControl?.address)
    service.tls = try context()
    service.heartbeat = localPushHeartbeat.duration
    service.requestTimeout = localPushTimeout.duration
    service.maximumUnacknowledged = maxLocalPushUnacknowledged
    service.maximumDirectoryUsers = maxLocalPushDirectory
    service.rate = localPushRate?.perSecond ?? 0
    service.callShare = localPushCalls?.value ?? 0
    service.planned = try localPushMessages.map(LocalPushMessageFile.read) ?? []
    service.faults.lostHeartbeats = localPushLostHeartbeats?.value ?? 0
    service.faults.silences = localPushSilence.sorted { $0.time < $1.time }
    service.faults.restarts = localPushRestart.sorted { $0.time < $1.time }
    options.localPush = service
  }
}

/// Moments of faults as typed: 30s:50% and 30s:5s.
enum LocalPushMoment {
  static let silence = "30s:50%"
  static let restart = "30s:5s"

  @Sendable static func parseSilence(_ text: String) throws -> LocalPushFaults.Silence {
    let parts = text.split(separator: ":", omittingEmptySubsequences: false).map(String.init)
    guard parts.count == 2, let time = TimeSpan(argument: parts[0]), let share = Share(argument: parts[1]) else {
      throw ValidationError("'\(text)' is not a time and a share, e.g. \(silence).")
    }
    return .init(time: time.duration, share: share.value)
  }

  @Sendable static func parseRestart(_ text: String) throws -> LocalPushFaults.Restart {
    let parts = text.split(separator: ":", omittingEmptySubsequences: false).map(String.init)
    guard parts.count == 2, let time = TimeSpan(argument: parts[0]), let pause = TimeSpan(argument: parts[1]) else {
      throw ValidationError("'\(text)' is not a time and how long nobody listens, e.g. \(restart).")
    }
    return .init(time: time.duration, pause: pause.duration)
  }
}

/// The messages of `--local-push-messages`: a JSON object a line.
enum LocalPushMessageFile {
  /// The longest file in bytes.
  private static let maximumLength = 64 << 20

  /// The messages in the order of their times. Reports an error and throws an exit code if the file cannot be read, or a
  /// line is no message.
  static func read(_ path: String) throws -> [LocalPushService.Planned] {
    let bytes: [UInt8]
    do {
      bytes = try WholeFile.read(path, maximumLength: maximumLength)
    } catch {
      complain("\(path): \(error)")
      throw ExitStatus.cannotOpen
    }
    var planned: [LocalPushService.Planned] = []
    var object = JSONObject()
    let lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
    for (number, line) in lines.enumerated() where line.contains(where: { $0 > UInt8(ascii: " ") }) {
      guard let message = message(Array(line), &object) else {
        complain(
          "\(path):\(number + 1): expected an object with at_s, kind (text, invite or call_action), to, and text or action"
        )
        throw ExitStatus.damaged
      }
      planned.append(message)
    }
    // Those of one time keep the order of their lines.
    return planned.enumerated().sorted { ($0.element.time, $0.offset) < ($1.element.time, $1.offset) }.map(\.element)
  }

  private static func message(_ line: [UInt8], _ object: inout JSONObject) -> LocalPushService.Planned? {
    let text = line.rawBytes
    guard object.read(text), let value = object.value("at_s", text), object.tape.kind(value) == .number,
      let range = object.range("at_s", text),
      let seconds = Double(String(decoding: line[range], as: UTF8.self)), (0...1e9).contains(seconds),
      let receiver = user("to", object, text),
      let content = LocalPushMessage.Content(
        kind: object.string("kind", text) ?? "", text: object.string("text", text),
        action: object.string("action", text), from: user("from", object, text), to: receiver)
    else { return nil }
    return .init(time: .seconds(seconds), content: content)
  }

  private static func user(_ key: String, _ object: JSONObject, _ text: RawSpan) -> LocalPushMessage.User? {
    if let device = object.integer(key, text) { return UInt64(exactly: device).map { .init(device: $0) } }
    return object.string(key, text).map { .init(identifier: $0, deviceName: "") }
  }
}
