import Bytes

/// A small file with a secret in it.
package enum SecretsFile {
  /// Reads all of it; throws when it cannot be read or is longer than the limit.
  package static func read(_ path: String, maximumLength: Int) throws(SecretsError) -> [UInt8] {
    do {
      return try WholeFile.read(path, maximumLength: maximumLength)
    } catch {
      let kind: SecretsError.Kind =
        switch error {
        case .cannotOpen: .cannotOpen
        case .readFailed: .readFailed
        case .longerThan: .unusable
        }
      throw SecretsError(error.description, kind: kind)
    }
  }
}
