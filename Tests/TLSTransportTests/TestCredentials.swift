import Foundation
import TestSupport

@testable import TLSTransport

/// Identities that the tests of connections share: making RSA keys takes its time.
struct TestCredentials: Sendable {
  static let topic = "com.example.app"

  static let p256 = TestCredentials(.p256)
  static let rsa = TestCredentials(.rsa2048)
  /// Another authority with the same topics.
  static let strangers = TestCredentials(.p256)

  static func of(_ kind: KeyKind) -> TestCredentials { kind == .p256 ? p256 : rsa }

  let directory: IdentityDirectory
  /// Why there are none is thrown by whatever asks for one.
  private let identities: Result<Identities, any Error>

  private struct Identities {
    var gateway: Identity
    var providers: [IdentityDirectory.ProviderState: Identity] = [:]
  }

  private init(_ kind: KeyKind) {
    let directory = IdentityDirectory(TestFolder.url.appending(path: UUID().uuidString).path)
    self.directory = directory
    identities = Result {
      var order = IdentityDirectory.Order(topics: [Self.topic])
      order.keyKind = kind
      order.states = Set(IdentityDirectory.ProviderState.allCases)
      _ = try directory.issue(order)
      var identities = Identities(gateway: try directory.gateway())
      for state in IdentityDirectory.ProviderState.allCases {
        identities.providers[state] = try directory.provider(topic: Self.topic, state)
      }
      return identities
    }
  }

  func gateway() throws -> Identity { try identities.get().gateway }

  func provider(_ state: IdentityDirectory.ProviderState = .valid) throws -> Identity {
    guard let identity = try identities.get().providers[state] else { throw ExternalTool.Failure.missing("\(state)") }
    return identity
  }

  /// A server that requires certificates of this authority and knows what it has revoked.
  func server(_ change: (inout TLSConfiguration) -> Void = { _ in }) throws -> TLSContext {
    var configuration = TLSConfiguration.server(identity: try gateway())
    configuration.authorityFile = directory.authorityFile
    configuration.revocationListFile = directory.revocationListFile
    change(&configuration)
    return try TLSContext(configuration)
  }

  /// A client with a valid provider's certificate.
  func client(_ change: (inout TLSConfiguration) -> Void = { _ in }) throws -> TLSContext {
    var configuration = TLSConfiguration.client(identity: try provider())
    configuration.authorityFile = directory.authorityFile
    change(&configuration)
    return try TLSContext(configuration)
  }
}

/// A folder that is gone when the process ends.
enum TestFolder {
  static let url: URL = {
    let url = FileManager.default.temporaryDirectory.appending(path: "apnscope-tests-\(UUID().uuidString)")
    // Whoever writes into it is told when there is none.
    try? FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    atexit { try? FileManager.default.removeItem(at: TestFolder.url) }
    return url
  }()
}

/// Bytes that look like nothing in particular.
func pattern(_ count: Int, _ seed: Int = 7) -> [UInt8] {
  (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ seed) }
}
