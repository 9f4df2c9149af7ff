import ArgumentParser
import Bytes
import CommandFiles
import DeviceFleet
import Glibc
import LoadTest
import TLSTransport

/// Where the device channel is, and how it is secured.
struct FleetTargetOptions: ParsableArguments {
  /// The port that examples use; no standard assigns one.
  private static let usualPort = 2198
  private static let standardGateway = GatewayArgument(.init(host: "127.0.0.1", port: usualPort))

  @Option(
    help: ArgumentHelp(
      "Address of the gateway's device channel. Default port: 2198.", valueName: "host:port",
      default: standardGateway),
    transform: FleetTargetOptions.parse)
  var gateway = standardGateway

  @Option(
    help: ArgumentHelp(
      "Authorities to trust for the gateway's certificate. Default: the system's.", valueName: "file"),
    completion: .file())
  var ca: String?

  @Flag(help: "Accept any certificate of the gateway.")
  var noVerify = false

  @Option(
    help: ArgumentHelp(
      "Accept any certificate of this public key: the SHA-256 of its SubjectPublicKeyInfo, in 64 hexadecimal digits.",
      valueName: "sha256"),
    transform: KeyDigest.parse)
  var pin: KeyDigest?

  @Flag(help: "Plain TCP without TLS.")
  var plain = false

  @Flag(help: "Allow connecting to another machine than this one.")
  var allowRemote = false

  @Option(
    help: ArgumentHelp(
      "TLS versions: one, or a range, e.g. 1.2..1.3.", valueName: "versions",
      default: TLSVersionRange(.tls12 ... .tls13)
    ),
    transform: TLSVersionRange.parse)
  var tls = TLSVersionRange(.tls12 ... .tls13)

  /// For `@Option(transform:)`, which reports the error.
  @Sendable private static func parse(_ text: String) throws -> GatewayArgument {
    guard let gateway = GatewayArgument(argument: text, usualPort: usualPort) else {
      return try GatewayArgument.parse(text)
    }
    return gateway
  }

  func validate() throws {
    if pin != nil, ca != nil || noVerify || plain {
      throw ValidationError("--pin takes the place of --ca and --no-verify, and --plain has no certificate.")
    }
    guard plain else { return }
    if ca != nil { throw ValidationError("--ca and --plain exclude each other.") }
    if noVerify { throw ValidationError("--no-verify and --plain exclude each other.") }
  }

  /// Resolves the names of the gateway and of the servers of networks once: the addresses checked here are those connected
  /// to.
  ///
  /// Throws when an address is remote and not allowed; reports an error and throws an exit code when there is none.
  func lookUp(for plan: inout FleetPlan) throws {
    try lookUp(&plan.gateway)
    guard var localPush = plan.localPush else { return }
    for place in localPush.networks.indices {
      guard var server = localPush.networks[place].server else { continue }
      try lookUp(&server)
      localPush.networks[place].server = server
    }
    plan.localPush = localPush
  }

  private func lookUp(_ gateway: inout FleetPlan.Gateway) throws {
    let (host, port) = (gateway.host, gateway.port)
    do {
      let addresses = try GatewayAddresses(host: host, port: port)
      if !allowRemote, let foreign = addresses.foreign {
        throw ValidationError(
          "\(host)\(foreign == host ? "" : ", which is \(foreign),") is not this machine. Connections to other people's systems need their consent: say --allow-remote if you have it."
        )
      }
      gateway.addresses = addresses.all
    } catch let error as GatewayAddresses.LookupError {
      complain("\(host): \(error)")
      throw ExitStatus.unavailable
    }
  }

  /// `nil` without TLS. Reports an error and throws an exit code when a certificate cannot be used.
  func context() throws -> TLSContext? {
    guard !plain else { return nil }
    if let ca, !Paths.exists(ca) {
      complain("\(ca): \(SystemError.text(errno))")
      throw ExitStatus.cannotOpen
    }
    var configuration = TLSConfiguration.client(identity: nil)
    configuration.versions = tls.versions
    configuration.authorityFile = ca
    configuration.peerCertificate = noVerify || pin != nil ? .notAsked : .required
    configuration.pinnedKey = pin?.bytes
    do {
      return try TLSContext(configuration)
    } catch {
      complain(error.message)
      throw ExitStatus.code(for: error)
    }
  }
}

/// The SHA-256 of a public key, as typed.
struct KeyDigest: Quantity {
  static let notation = "64 hexadecimal digits"

  let bytes: [UInt8]
  let text: String

  init?(argument: String) {
    text = argument.lowercased()
    let digits = argument.utf8.compactMap(\.valueAsHexadecimalDigit)
    guard argument.utf8.count == 64, digits.count == 64 else { return nil }
    bytes = stride(from: 0, to: 64, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
  }
}
