import ArgumentParser
import Bytes
import CommandFiles
import Glibc
import LoadTest
import TLSTransport

struct TargetOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Address of the gateway. Default port: 2195.", valueName: "host:port",
      default: standardGateway), transform: GatewayArgument.parse)
  var gateway = standardGateway

  private static let standardGateway = GatewayArgument(.init(host: "127.0.0.1", port: 2195))

  @Option(
    help: ArgumentHelp(
      "The provider's certificate: a directory made by 'apnscope identity', a PEM file, or a PKCS#12 file. Repeatable in a load with --payload-file, for payloads of several topics.",
      valueName: "path"), completion: .file())
  var identity: [String] = []

  @Option(
    help: ArgumentHelp("The private key, if it is not in the certificate's PEM file.", valueName: "file"),
    completion: .file())
  var key: String?

  @Option(
    help: ArgumentHelp(
      "A file whose first line is the pass phrase of the key or PKCS#12 file, or of all of them.", valueName: "file"),
    completion: .file())
  var passPhraseFile: String?

  @Option(
    help: ArgumentHelp(
      "Topic to push to, if the directory has several. Repeatable like --identity: each is an identity.",
      valueName: "topic"))
  var topic: [String] = []

  @Option(
    help: ArgumentHelp(
      "Authorities to trust for the gateway's certificate. Default: the directory's, or else the system's.",
      valueName: "file"
    ),
    completion: .file())
  var ca: String?

  @Flag(help: "Accept any certificate of the gateway.")
  var noVerify = false

  @Flag(help: "Plain TCP without TLS.")
  var plain = false

  @Flag(help: "Allow sending to another machine than this one.")
  var allowRemote = false

  @Option(
    help: ArgumentHelp(
      "TLS versions: one, or a range, e.g. 1.0..1.2.", valueName: "versions",
      default: TLSVersionRange(.tls12 ... .tls12)),
    transform: TLSVersionRange.parse)
  var tls = TLSVersionRange(.tls12 ... .tls12)

  @Option(
    help: ArgumentHelp("Cipher suites up to TLS 1.2, as an OpenSSL cipher list.", valueName: "list"))
  var ciphers: String?

  @Option(
    name: .customLong("tls13-suites"), help: ArgumentHelp("Cipher suites of TLS 1.3.", valueName: "list"))
  var tls13Suites: String?

  @Option(help: ArgumentHelp("Resume TLS sessions when a connection is reopened.", valueName: "on|off"))
  var resume = Switch.on

  @Option(
    help: ArgumentHelp(
      "Append the secrets of all connections to this file (NSS key log). A new file is readable by the owner only; an existing file keeps its mode.",
      valueName: "file"), completion: .file())
  var keylog: String?

  func validate() throws {
    try validateIdentities()
  }

  /// The files that are read; a folder stands for its files.
  var files: [String] { identity + [key, passPhraseFile, ca].compactMap { $0 } }

  func requireIdentity() throws {
    if identity.isEmpty, !plain {
      throw ValidationError("Give --identity (see 'apnscope identity --help'), or --plain for TCP without TLS.")
    }
  }

  func apply(to plan: inout LoadPlan) throws {
    plan.gateway.host = gateway.address.host
    plan.gateway.port = gateway.address.port
    plan.resumesSessions = resume == .on
    plan.verifiesName = !noVerify
    if let literal = GatewayAddresses(literal: plan.gateway.host, port: plan.gateway.port) {
      try judge(literal, named: plan.gateway.host)
    }
  }

  /// Resolves the names of the gateway and the feedback service once: the addresses checked here are those connected to.
  ///
  /// Throws when an address is remote and not allowed; reports an error and throws an exit code when there is none.
  func lookUp(for plan: inout LoadPlan) throws {
    plan.gateway.addresses = try addresses(of: plan.gateway)
    if let feedback = plan.feedback { plan.feedback?.service.addresses = try addresses(of: feedback.service) }
  }

  private func addresses(of gateway: LoadPlan.Gateway) throws -> GatewayAddresses {
    do {
      let addresses = try GatewayAddresses(host: gateway.host, port: gateway.port)
      try judge(addresses, named: gateway.host)
      return addresses
    } catch let error as GatewayAddresses.LookupError {
      complain("\(gateway.host): \(error)")
      throw ExitStatus.unavailable
    }
  }

  /// Throws when one of a host's addresses is remote, unless that is allowed.
  func judge(_ addresses: GatewayAddresses, named host: String) throws {
    guard !allowRemote, let foreign = addresses.foreign else { return }
    throw ValidationError(
      "\(host)\(foreign == host ? "" : ", which is \(foreign),") is not this machine. Load on other people's systems needs their consent: say --allow-remote if you have it."
    )
  }

  /// `nil` without TLS.
  ///
  /// - Parameter isDryRun: nothing is written.
  func context(isDryRun: Bool = false) throws -> TLSContext? { try allContexts(isDryRun: isDryRun).first?.context }

  /// The context of each identity; none without TLS.
  ///
  /// - Parameter isDryRun: nothing is written.
  func allContexts(isDryRun: Bool) throws -> [(identity: ProviderIdentity, context: TLSContext)] {
    guard !identity.isEmpty else { return [] }
    if let ca, !Paths.exists(ca) {
      complain("\(ca): \(SystemError.text(errno))")
      throw ExitStatus.cannotOpen
    }
    // One file for all.
    let keyLog = isDryRun ? nil : try keylog.map { try complaining($0) }
    return try identities().map { identity in
      do {
        return (identity, try context(identity, keyLog))
      } catch let error as TLSError {
        throw complaining(of: error, identity.path)
      }
    }
  }

  func complaining(of error: TLSError, _ identity: String) -> ExitCode {
    let way = Paths.exists(identity) ? "" : "; 'apnscope identity --directory \(identity) --topic TOPIC' makes it"
    complain(error.message + way)
    // `.file`: an input file, because the key log is open already.
    return error.kind == .file ? ExitStatus.cannotOpen : ExitStatus.code(for: error)
  }

  private func complaining(_ keyLog: String) throws -> KeyLogFile {
    do {
      let file = try KeyLogFile(path: keyLog)
      if let warning = file.warning { complain(warning) }
      return file
    } catch {
      complain(error.message)
      throw ExitStatus.code(for: error)
    }
  }

  private func context(_ provider: ProviderIdentity, _ keyLog: KeyLogFile?) throws -> TLSContext {
    var configuration = TLSConfiguration.client(identity: provider.identity)
    configuration.versions = tls.versions
    configuration.cipherList = ciphers
    configuration.cipherSuites = tls13Suites
    configuration.authorityFile = ca ?? provider.directory?.authorityFile
    configuration.peerCertificate = noVerify ? .notAsked : .required
    configuration.resumesSessions = resume == .on
    configuration.keyLog = keyLog
    return try TLSContext(configuration)
  }
}
