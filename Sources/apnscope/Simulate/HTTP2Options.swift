import ArgumentParser
import Bytes
import CommandFiles
import GatewaySimulator
import HTTP2Server
import ProviderAPI
import TLSTransport

extension HTTP2Service.Trust: ExpressibleByArgument {}
extension ServerOptions.Excess: ExpressibleByArgument {}

/// The HTTP/2 provider API.
struct HTTP2Options: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Serve the HTTP/2 provider API at this address: over TLS with and without ALPN, with --plain in cleartext (h2c). The binary gateway then runs only with --gateway.",
      valueName: "host:port"), transform: ListeningAddress.parse)
  var http2: ListeningAddress?

  @Option(
    help: ArgumentHelp(
      "Whom HTTP/2 trusts: any, who shows a certificate, for its topics, or who shows a provider token. Default: token with --provider-key, else any.",
      valueName: "whom"))
  var trust: HTTP2Service.Trust?

  @Option(
    help: ArgumentHelp(
      "A key that verifies provider tokens: a file in PEM, public or private (.p8), and the key's and the team's identifiers, which default to those of AuthKey_ID.p8 and to any; then environment=sandbox or production, topics=A+B, and related=KEY, whose tokens may follow on a connection. Repeatable.",
      valueName: "file"), completion: .file(extensions: ["p8", "pem"]))
  var providerKey: [String] = []

  @Option(
    help: ArgumentHelp(
      "Serve the management of broadcast channels at this address, with the TLS and the trust of --http2, which then takes broadcasts to them.",
      valueName: "host:port"), transform: ListeningAddress.parse)
  var http2Channels: ListeningAddress?

  @Option(
    help: ArgumentHelp("SETTINGS_MAX_CONCURRENT_STREAMS; with tokens 1 until the first good one.", valueName: "count"))
  var streams = 1_000

  @Option(help: ArgumentHelp("What a stream above this limit gets.", valueName: "what"))
  var excessStreams = ServerOptions.Excess.refused

  @Flag(help: "Answers that accept have an apns-unique-id, as those of the sandbox.")
  var sandbox = false

  @Option(
    help: ArgumentHelp(
      "A rule of HTTP/2 that Apple does not document, as NAME=VALUE. \(Self.rules). REASON is any documented reason. Repeatable.",
      valueName: "rule"))
  var http2Rule: [String] = []

  @Option(
    help: ArgumentHelp(
      "A fault of HTTP/2 on demand, as KIND,KEY=VALUE…: \(Self.faultKinds). When: \(HTTP2Fault.occasions); without these, each notification. Repeatable; of those that decide about an answer the first that hits does.",
      valueName: "fault"))
  var http2Fault: [String] = []

  @Option(
    help: ArgumentHelp(
      "A limit on a client of HTTP/2, as NAME=VALUE; a number of frames is how many may come at once, and how many more each second. \(Self.limitNames). Repeatable.",
      valueName: "limit"))
  var http2Limit: [String] = []

  private static let faultKinds: String = HTTP2Fault.kinds.map { $0.keys.isEmpty ? $0.name : "\($0.name) (\($0.keys))" }
    .joined(separator: "; ")
  private static let limitNames: String = ServiceLimit.all.map { "\($0.name)=\($0.value): \($0.summary)" }.joined(
    separator: "; ")
  private static let rules = ServingRule.all.map { "\($0.name): \($0.summary), \($0.values.joined(separator: "|"))" }
    .joined(separator: "; ")

  func validate() throws {
    guard (1...1_000_000).contains(streams) else {
      throw ValidationError("--streams must be 1 to 1000000 (got \(streams)).")
    }
    _ = try servingRules()
    _ = try faults()
    var service = HTTP2Service(address: .init(host: "", port: 0))
    try applyLimits(to: &service)
  }

  /// Requirements of options that a file of settings may meet instead of the command line.
  func requireCompanions() throws {
    let needs =
      trust != nil || !providerKey.isEmpty || sandbox || !http2Rule.isEmpty || !http2Fault.isEmpty
      || !http2Limit.isEmpty || http2Channels != nil
    if http2 == nil, needs {
      throw ValidationError(
        "--trust, --provider-key, --sandbox, --http2-rule, --http2-fault, --http2-limit and --http2-channels need --http2."
      )
    }
    if trust == .token, providerKey.isEmpty {
      throw ValidationError("--trust token needs --provider-key: without a key no signature can be verified.")
    }
    if let trust, trust != .token, !providerKey.isEmpty {
      throw ValidationError("--provider-key needs --trust token, not \(trust.rawValue).")
    }
  }

  private func servingRules() throws -> ServingRules {
    var rules = ServingRules()
    for text in http2Rule {
      let pair = text.split(separator: "=", maxSplits: 1).map(String.init)
      guard pair.count == 2, ServingRule.apply(pair[0], pair[1], to: &rules) else {
        throw ValidationError("--http2-rule takes \(Self.rules), not '\(text)'.")
      }
    }
    return rules
  }

  /// The faults; a file of delays is not read yet.
  private func faults() throws -> [HTTP2Fault] {
    try http2Fault.map { text in
      do throws(HTTP2Fault.Problem) {
        return try HTTP2Fault(text)
      } catch {
        throw ValidationError("--http2-fault \(text): \(error).")
      }
    }
  }

  private func applyLimits(to service: inout HTTP2Service) throws {
    for text in http2Limit {
      let pair = text.split(separator: "=", maxSplits: 1).map(String.init)
      guard pair.count == 2, ServiceLimit.apply(pair[0], pair[1], to: &service) else {
        throw ValidationError("--http2-limit takes \(Self.limitNames), not '\(text)'.")
      }
    }
  }

  /// - Parameter context: makes the TLS context for this trust; `nil` in cleartext.
  func apply(to options: inout SimulatorOptions, _ context: (HTTP2Service.Trust) throws -> TLSContext?) throws {
    guard let http2 else { return }
    var service = HTTP2Service(address: http2.address)
    service.trust = trust ?? (providerKey.isEmpty ? .any : .token)
    service.providerKeys = try providerKey.map { try Self.key($0) }
    service.rules = try servingRules()
    service.session.streamLimit = streams
    try applyLimits(to: &service)
    service.session.maximumOpenStreams = max(service.session.maximumOpenStreams, streams)
    service.session.excess = excessStreams
    service.isSandbox = sandbox
    service.tls = try context(service.trust)
    options.http2 = service
    options.channels = http2Channels?.address
    options.behavior.http2Faults = try faults().map { fault in
      var fault = fault
      do throws(DelayList.Problem) {
        try fault.readFile()
      } catch {
        complain(error.description)
        throw ExitStatus.cannotOpen
      }
      return fault
    }
  }

  /// Files of keys and of delays that are read.
  var files: [String] {
    providerKey.map { String($0.split(separator: ",", omittingEmptySubsequences: false)[0]) }
      + http2Fault.compactMap { try? HTTP2Fault($0).file }
  }

  /// A key's scope of `NAME=VALUE`, each name once; `nil`: one of them is none.
  private static func scope(_ words: ArraySlice<String>) -> ProviderKey.Scope? {
    var scope = ProviderKey.Scope()
    var names: Set<Substring> = []
    for word in words {
      let pair = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      guard pair.count == 2, names.insert(pair[0]).inserted else { return nil }
      let values = pair[1].split(separator: "+", omittingEmptySubsequences: false).map(String.init)
      guard values.allSatisfy({ !$0.isEmpty }) else { return nil }
      switch pair[0] {
      case "environment" where values == ["sandbox"]: scope.isOfSandbox = true
      case "environment" where values == ["production"]: scope.isOfSandbox = false
      case "topics": scope.topics = Set(values)
      case "related": scope.related = Set(values)
      default: return nil
      }
    }
    return scope
  }

  private static func key(_ text: String) throws -> ProviderKey {
    let words = text.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
    let parts = Array(words.enumerated().prefix { $0.offset == 0 || !$0.element.contains("=") }.map(\.element))
    let unknown = ValidationError(
      "--provider-key takes FILE, FILE,KEY or FILE,KEY,TEAM, then environment=sandbox|production, topics=A+B and related=KEY, not '\(text)'."
    )
    guard parts.count <= 3, !parts[0].isEmpty, let scope = scope(words.dropFirst(parts.count)) else { throw unknown }
    let name = parts[0].split(separator: "/").last.map(String.init) ?? ""
    let standard = name.hasPrefix("AuthKey_") && name.hasSuffix(".p8") ? String(name.dropFirst(8).dropLast(3)) : nil
    let bytes: [UInt8]
    do {
      bytes = try WholeFile.read(parts[0], maximumLength: 1 << 16)
    } catch {
      complain("\(parts[0]): \(error)")
      throw ExitStatus.cannotOpen
    }
    func identifier(_ place: Int) -> String? { parts.count > place && !parts[place].isEmpty ? parts[place] : nil }
    let key = ProviderKey(pem: bytes, keyID: identifier(1) ?? standard, teamID: identifier(2), scope: scope)
    guard let key else {
      complain("\(parts[0]): no key on the curve P-256 in PEM without a pass phrase")
      throw ExitStatus.damaged
    }
    return key
  }
}
