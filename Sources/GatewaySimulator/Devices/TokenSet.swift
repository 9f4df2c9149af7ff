import Bytes

/// Tokens that can be looked up without allocating.
public struct TokenSet: Sendable, Equatable {
  private var tokens: Set<TokenKey> = []

  public init(_ tokens: some Sequence<[UInt8]>) {
    for token in tokens { self.tokens.insert(TokenKey(token.rawBytes)) }
  }

  /// Reads a list as `DevicePopulation(contentsOf:)` does; what its devices are does not matter here.
  public init(contentsOf path: String) throws(DevicePopulationError) {
    tokens = try DevicePopulation(contentsOf: path).listedTokens
  }

  public var count: Int { tokens.count }

  /// The token, if there is one; `nil`: there are several, or none.
  package var only: [UInt8]? { tokens.count == 1 ? tokens.first?.token : nil }

  func contains(_ token: RawSpan) -> Bool { tokens.contains(TokenKey(token)) }
}
