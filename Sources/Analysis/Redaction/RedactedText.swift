import BinaryProtocol
import DeviceProtocol
import HTTP2
import Measurement
import PushModel
import Records
import TLSDecryption

/// Redacts texts in records: only apnscope's own words stay, because records that are read back may hold anything.
enum RedactedText {
  // MARK: problems

  /// The text of a problem, as `ParseError` and `TLSStream` word it: known words stay, letters of other words become x,
  /// digits 1. Numbers stay if all words are known and the number is a byte's or item's, or a length of at most 16
  /// bits.
  static func problem(_ text: String) -> String {
    let rule = text.replacing(/\ \(stream \d+\)$/, with: "")
    if rules.contains(rule) { return text }
    var words: [(text: Substring, isKnown: Bool, isNumber: Bool)] = []
    var rest = text[...]
    while let first = rest.first {
      let isWord = Self.isOfWord(first)
      let word = rest.prefix { Self.isOfWord($0) == isWord }
      rest = rest.dropFirst(word.count)
      let isNumber = isWord && word.allSatisfy { $0.isASCII && $0.isNumber }
      let isKnown = isWord ? isVocabulary(word) : isPunctuation(word)
      words.append((word, isKnown && !isNumber, isNumber))
    }
    let isSentence =
      words.allSatisfy { $0.isKnown || $0.isNumber } && words.count { $0.isKnown && $0.text.count > 1 } > 1
    return words.map { word in
      if word.isKnown || word.isNumber && isSentence && UInt16(word.text) != nil { return String(word.text) }
      return String(word.text.map(masked))
    }.joined()
  }

  /// Sentences that have no words of the wire: broken rules of HTTP/2, and faults of messages.
  private static let rules = Set(
    Rule.allCases.map(\.description) + ["part of a frame that a gap cut", "not HTTP/2"]
      + ["part of a message that a gap cut", "no message begins here", "there is no message of this name"]
      + members.map { MessageError.member($0).description })

  /// Members of messages of the device channel and of local push.
  private static let members = [
    "message", "version", "device", "topic", "environment", "language", "generation", "token", "tokens", "received",
    "low_power", "sequence", "priority", "push_type", "expiration", "collapse_id", "sent_ns", "stored", "repeated",
    "payload", "old", "new", "reason", "command", "requestIdentifier", "codingKey", "data",
  ]

  private static func isVocabulary(_ word: Substring) -> Bool {
    vocabulary.contains(word) || word.split(separator: "_").allSatisfy(vocabulary.contains)
      || CipherSuite(name: String(word)) != nil
  }

  private static func isOfWord(_ character: Character) -> Bool {
    character.isLetter || character.isNumber || character == "_"
  }

  private static func isPunctuation(_ text: Substring) -> Bool { text.allSatisfy { " '’…,.;:()-".contains($0) } }

  /// Letters become x, and digits 1.
  static func masked(_ text: String) -> String { String(text.map(masked)) }

  private static func masked(_ character: Character) -> Character {
    character.isNumber ? "1" : " '’…,.;:()-".contains(character) ? character : "x"
  }

  private static let vocabulary: Set<Substring> = Set(
    """
    a alert and are as at attempts be before began by byte bytes cannot capture certificate cipher client client's \
    ClientHello ClientKeyExchange command compression connection cut damage data DEFLATE does ends exchange \
    extended fits finished for frame gap given group handshake handshakes has header here hello in incomplete is \
    it its item key keys lacks legacy length limit line lines log master message messages method missing more was \
    need needs neither next no none nor not of offset older on one only open opened opens OpenSSL OpenSSL's or other \
    other's over overruns packets part payload premaster provider random RC4 record records recovered response \
    resumed run far ahead s secret secrets server server's ServerHello session short side side's snap SSL stale \
    state status stream suite suites supported that the them these they this TLS to token traffic unknown version \
    wrong where which whole with could belong does JSON object there end from so unused close_notify unexpected_message bad_record_mac \
    decryption_failed record_overflow decompression_failure handshake_failure no_certificate bad_certificate \
    unsupported_certificate certificate_revoked certificate_expired certificate_unknown illegal_parameter \
    unknown_ca access_denied decode_error decrypt_error export_restriction protocol_version insufficient_security \
    internal_error inappropriate_fallback user_canceled no_renegotiation missing_extension unsupported_extension \
    unrecognized_name bad_certificate_status_response unknown_psk_identity certificate_required \
    no_application_protocol RSA DHE ECDHE ECDH DH PSK AES ARIA CAMELLIA CBC CCM CHACHA20 DES EDE GCM IDEA NULL \
    SEED 3DES EDE3
    """.split(separator: " "))

  // MARK: selections

  /// The option that selected records: numbers, times and apnscope's own words stay as values; other values do not.
  static func selection(_ option: String) -> String {
    let parts = option.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
    let name = String(parts[0])
    guard let isStructure = structure[name] else {
      return ["--token", "--topic", "--identifier"].contains(name) ? name + "=redacted" : "redacted"
    }
    return parts.count == 2 && isStructure(parts[1]) ? option : name + "=redacted"
  }

  private static func isTime(_ text: Substring) -> Bool { RecordSelection.Moment(clock: String(text)) != nil }

  private static func isNumber(_ text: Substring) -> Bool { UInt32(text) != nil }

  private static let structure: [String: @Sendable (Substring) -> Bool] = [
    "--from": isTime, "--to": isTime, "--status": isNumber, "--limit": isNumber,
    "--connection": { $0.split(separator: ".").allSatisfy(isNumber) },
    "--fate": { Fate(rawValue: String($0)) != nil },
    "--type": { RecordType(rawValue: String($0)) != nil },
    "--outcome": { name in StoryOutcome.allCases.contains { $0.name == name } },
  ]
}
