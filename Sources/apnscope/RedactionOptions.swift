import Analysis
import ArgumentParser
import Bytes
import CommandFiles
import TLSDecryption

/// Whether output is made safe to pass on.
struct RedactionOptions: ParsableArguments {
  @Flag(
    help:
      "Make the output safe to pass on: what is known to be structure stays, and everything else becomes a placeholder of the same length. Tokens, addresses, certificate subjects, topics, and names of files and interfaces become pseudonyms (the same for the same name). Of payloads documented keys, 'default' as a sound, interruption levels, flags, true, false, null, brackets and lengths stay; texts, other keys and numbers become letters and digits that say nothing, and what is no JSON is replaced as a whole. Unknown items and malformed bytes are erased. Identifiers, expirations, statuses, ports and times stay. Messages name arguments by their number, pages name options alone."
  )
  var redact = false

  @Option(
    help: ArgumentHelp(
      "File whose bytes (at least 16) are the key of the pseudonyms, so that they are the same in another run. Default: a random key.",
      valueName: "file"), completion: .file())
  var redactKey: String?

  @Flag(help: "With --redact: keep addresses, certificate subjects and topics. Names of files do not stay.")
  var keepAddresses = false

  /// The files that are read.
  var files: [String] { redactKey.map { [$0] } ?? [] }

  func validate() throws {
    if !redact, redactKey != nil { throw ValidationError("--redact-key needs --redact.") }
    if !redact, keepAddresses { throw ValidationError("--keep-addresses needs --redact.") }
  }

  /// `nil`: nothing is redacted.
  var redaction: Redaction? {
    get throws { redact ? try Self.redaction(keyFile: redactKey, keepsAddresses: keepAddresses) : nil }
  }

  /// - Parameter keyFile: the file with the key; `nil`: the key is random.
  static func redaction(keyFile: String?, keepsAddresses: Bool) throws -> Redaction {
    guard let redaction = Redaction(key: try key(in: keyFile), keepsAddresses: keepsAddresses) else {
      complain("\(keyFile ?? "--redact"): a key takes at least \(Redaction.shortestKey) bytes")
      throw ExitStatus.damaged
    }
    return redaction
  }

  private static func key(in file: String?) throws -> [UInt8] {
    guard let file else { return (0..<32).map { _ in UInt8.random(in: 0...255) } }
    do {
      return try SecretsFile.read(file, maximumLength: 1 << 20)
    } catch {
      complain("\(file): \(error.message)")
      throw ExitStatus.code(for: error)
    }
  }
}
