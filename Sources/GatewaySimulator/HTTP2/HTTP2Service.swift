import HTTP2Server
import ProviderAPI
import TLSFoundation
import TLSTransport

/// The HTTP/2 provider API of a simulator.
public struct HTTP2Service: Sendable {
  /// Whom the service trusts.
  public enum Trust: String, Sendable, CaseIterable {
    /// Everybody; an `authorization` is not looked at.
    case any
    /// A client with a certificate, for the topics that it names.
    case certificate
    /// A client with a provider token that one of `providerKeys` has signed.
    case token
  }

  /// The requests that a service answers.
  package enum Purpose: Sendable {
    /// Notifications to devices, and broadcasts.
    case notifications
    /// The channels of broadcasts: they are created, read and deleted.
    case channels
  }

  /// Where it listens.
  public var address: SimulatorOptions.Address
  /// `nil`: cleartext with prior knowledge (h2c).
  public var tls: TLSContext?
  public var trust = Trust.any
  /// The keys that verify provider tokens.
  public var providerKeys: [ProviderKey] = []
  /// The rules that Apple does not document.
  public var rules = ServingRules()
  package var session = ServerOptions()
  package var purpose = Purpose.notifications
  /// Whether answers that accept have `apns-unique-id`, as those of the sandbox.
  public var isSandbox = false
  /// SETTINGS_MAX_CONCURRENT_STREAMS, 1 or more; `nil`: none is announced.
  public var streamLimit: Int? {
    get { session.streamLimit }
    set { session.streamLimit = newValue }
  }
  /// With tokens, the limit on streams until the first good one. Apple: one.
  public var firstStreamLimit = 1
  /// Topics of a connection that are kept apart; a notification to a further one is rejected (ServiceUnavailable).
  public var maximumTopics = 1_000
  /// Different provider tokens of a connection that are remembered; further ones are verified each time.
  public var maximumTokens = 100
  /// Channels of one app; Apple: 10,000 in each environment. A further one is rejected (CannotCreateChannelConfig).
  public var maximumChannelsOfApp = 10_000
  /// Channels of all apps.
  public var maximumChannels = 100_000
  /// Provider tokens that the ledger lists; further ones are only counted.
  public var maximumListedTokens = 1_000

  /// The service of an address, in cleartext and with the default rules.
  public init(address: SimulatorOptions.Address) { self.address = address }
}

/// A key that verifies provider tokens.
public struct ProviderKey: Sendable {
  package var key: ES256Key
  /// The `kid` of its tokens; `nil`: any.
  public var keyID: String?
  /// The `iss` of its tokens; `nil`: any.
  public var teamID: String?
  public var scope: Scope

  /// Where the tokens of a key are good.
  public struct Scope: Sendable {
    /// Whether they are for the sandbox, or for production; `nil`: for both.
    public var isOfSandbox: Bool?
    /// The topics that they are for; `nil`: all of the team.
    public var topics: Set<String>?
    /// The keys, by `kid`, whose tokens may take the place of this one's on a connection, and the other way round.
    public var related: Set<String> = []

    public init() {}
  }

  /// Reads a public or private key on the curve P-256 in PEM without a pass phrase; `nil`: there is none.
  ///
  /// - Parameters:
  ///   - keyID: the `kid` of its tokens; `nil`: any.
  ///   - teamID: the `iss` of its tokens; `nil`: any.
  public init?(pem: [UInt8], keyID: String?, teamID: String?, scope: Scope = Scope()) {
    guard let key = ES256Key(pem: pem) else { return nil }
    self.init(key: key, keyID: keyID, teamID: teamID, scope: scope)
  }

  package init(key: ES256Key, keyID: String?, teamID: String?, scope: Scope = Scope()) {
    (self.key, self.keyID, self.teamID, self.scope) = (key, keyID, teamID, scope)
  }
}
