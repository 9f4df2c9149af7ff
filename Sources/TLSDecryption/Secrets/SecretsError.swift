/// Why secrets cannot be used, as text to follow a file name. Never contains a secret.
public struct SecretsError: Error, Sendable, Equatable, CustomStringConvertible {
  /// The kinds of failure: opening the file, reading it, or using its contents.
  public enum Kind: Sendable { case unusable, cannotOpen, readFailed }
  /// The kind of failure.
  public var kind: Kind
  /// The reason, without the name of the file.
  public var message: String

  init(_ message: String, kind: Kind = .unusable) {
    self.message = message
    self.kind = kind
  }
  public var description: String { message }
}
