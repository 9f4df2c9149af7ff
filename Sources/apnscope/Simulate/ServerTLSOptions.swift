import ArgumentParser
import Bytes
import GatewaySimulator
import Glibc
import TLSTransport

enum ClientCertificate: String, CaseIterable, ExpressibleByArgument {
  case required, optional, none
}

struct ServerTLSOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "A directory of 'apnscope identity': the gateway presents its certificate, and accepts clients with a certificate of the same authority.",
      valueName: "directory"), completion: .directory)
  var identity: String?

  @Flag(help: "Plain TCP without TLS. All connections push to --plain-topic.")
  var plain = false

  @Option(help: ArgumentHelp("The topic of connections without TLS.", valueName: "topic"))
  var plainTopic = "com.example.app"

  @Option(
    help: ArgumentHelp(
      "TLS versions: one, or a range, e.g. 1.0..1.2. The default accepts old clients.", valueName: "versions",
      default: TLSVersionRange(.tls10 ... .tls13)), transform: TLSVersionRange.parse)
  var tls = TLSVersionRange(.tls10 ... .tls13)

  @Option(
    help: ArgumentHelp(
      "Cipher suites up to TLS 1.2, as an OpenSSL cipher list, e.g. 'ECDHE+AESGCM:AES128-SHA'.", valueName: "list"))
  var ciphers: String?

  @Option(
    name: .customLong("tls13-suites"),
    help: ArgumentHelp("Cipher suites of TLS 1.3, e.g. 'TLS_AES_128_GCM_SHA256'.", valueName: "list"))
  var tls13Suites: String?

  @Option(
    help: ArgumentHelp(
      "Whether a client certificate is required, optional, or not requested. Without one there is no topic, and every notification gets status 3.",
      valueName: "need"))
  var clientCertificate = ClientCertificate.required

  @Flag(help: "Accept clients with revoked certificates.")
  var allowRevoked = false

  @Option(
    help: ArgumentHelp(
      "Session tickets sent after a TLS 1.3 handshake. None by default, because legacy clients take them for an error response.",
      valueName: "count"))
  var tickets = 0

  @Option(
    help: ArgumentHelp(
      "How TLS sessions are resumed: with ids (up to TLS 1.2, from a cache in the server), with tickets, or not at all. With ids a handshake takes a third of the time.",
      valueName: "how")
  )
  var resume = Resumption.ids

  @Option(
    help: ArgumentHelp(
      "Append the secrets of all connections to this file (NSS key log), for 'apnscope decode --keys'. A new file is readable by the owner only; an existing file keeps its mode.",
      valueName: "file"), completion: .file())
  var keylog: String?

  @Option(
    help: ArgumentHelp(
      "Show a certificate that ends after this time, counted from the start; 0s: it has ended. Made for localhost by the authority of --identity, whose ca.key is read.",
      valueName: "time"), transform: TimeSpan.parse)
  var certificateEnds: TimeSpan?

  enum Resumption: String, CaseIterable, ExpressibleByArgument { case tickets, ids, off }

  func validate() throws {
    if identity != nil, plain { throw ValidationError("--identity and --plain exclude each other.") }
    if plain, certificateEnds != nil { throw ValidationError("--certificate-ends needs --identity.") }
    guard (0...16).contains(tickets) else {
      throw ValidationError("--tickets must be 0 to 16 (got \(tickets)).")
    }
  }

  func apply(to options: inout SimulatorOptions) throws {
    options.plainTopic = plainTopic
    guard let identity else { return }
    options.tls = try reporting { try context(IdentityDirectory(identity)) }
  }

  /// The TLS of HTTP/2: 1.2 or later, with ALPN for clients that offer it. Certificates are asked for if they are what is
  /// trusted; a client without one is told so by its answers.
  func http2Context(_ trust: HTTP2Service.Trust) throws -> TLSContext? {
    guard let identity else { return nil }
    return try reporting {
      let directory = IdentityDirectory(identity)
      var configuration = try configuration(directory)
      configuration.versions = max(tls.versions.lowerBound, .tls12)...max(tls.versions.upperBound, .tls12)
      configuration.applicationProtocols = ["h2"]
      configuration.peerCertificate = trust == .certificate ? .optional : .notAsked
      if trust != .certificate { configuration.revocationListFile = nil }
      return try TLSContext(configuration)
    }
  }

  /// The TLS of the device channel: a device shows no certificate.
  func deviceContext() throws -> TLSContext? {
    guard let identity else { return nil }
    return try reporting {
      var configuration = try configuration(IdentityDirectory(identity))
      configuration.versions = max(tls.versions.lowerBound, .tls12)...max(tls.versions.upperBound, .tls12)
      configuration.peerCertificate = .notAsked
      configuration.revocationListFile = nil
      return try TLSContext(configuration)
    }
  }

  private func reporting<Value>(_ body: () throws -> Value) throws -> Value {
    do {
      return try body()
    } catch let error as TLSError {
      complain(error.message)
      throw ExitStatus.code(for: error)
    }
  }

  /// A missing file is reported with the system's message and the command that creates it.
  private func requireFiles(_ directory: IdentityDirectory) throws {
    let files = ["\(directory.path)/gateway.pem", "\(directory.path)/gateway.key", directory.authorityFile]
    for file in files + (allowRevoked ? [] : [directory.revocationListFile]) where unsafe access(file, R_OK) != 0 {
      let way = errno == ENOENT ? "; 'apnscope identity --directory \(identity ?? "") --topic TOPIC' makes it" : ""
      complain("\(file): \(SystemError.text(errno))\(way)")
      throw ExitStatus.cannotOpen
    }
  }

  private func context(_ directory: IdentityDirectory) throws -> TLSContext {
    try TLSContext(try configuration(directory))
  }

  private func configuration(_ directory: IdentityDirectory) throws -> TLSConfiguration {
    try requireFiles(directory)
    let identity =
      if let certificateEnds {
        try directory.authority().gateway(.p256, .seconds(Int((certificateEnds.duration / .seconds(1)).rounded(.down))))
      } else {
        try directory.gateway()
      }
    var configuration = TLSConfiguration.server(identity: identity)
    configuration.versions = tls.versions
    configuration.cipherList = ciphers
    configuration.cipherSuites = tls13Suites
    configuration.peerCertificate =
      switch clientCertificate {
      case .required: .required
      case .optional: .optional
      case .none: .notAsked
      }
    configuration.authorityFile = directory.authorityFile
    if !allowRevoked { configuration.revocationListFile = directory.revocationListFile }
    configuration.ticketCount = tickets
    configuration.usesTickets = resume == .tickets
    configuration.resumesSessions = resume != .off
    configuration.keyLog = try keylog.map { try KeyLogFile(path: $0) }
    if let warning = configuration.keyLog?.warning { complain(warning) }
    return configuration
  }
}
