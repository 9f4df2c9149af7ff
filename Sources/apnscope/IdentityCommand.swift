import ArgumentParser
import CommandFiles
import Glibc
import TLSTransport

struct IdentityCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "identity",
    abstract: "Make throw-away certificates for a gateway and its providers.",
    usage: "apnscope identity --directory <path> --topic <topic> ... [<options>]",
    discussion: """
      Creates an authority, a gateway certificate and one provider certificate for each topic, as files in a directory for \
      simulate and load (--identity). The gateway certificate is for localhost, 127.0.0.1, ::1, and the names given with \
      --server-name. No other software trusts them.

      Files in the directory:
        ca.pem, ca.key            the authority; its key signs later additions
        gateway.pem, gateway.key  the gateway
        TOPIC.pem, TOPIC.key      a provider; UID=TOPIC and a CN like Apple's
        TOPIC.combined.pem        the same certificate and key in one file
        TOPIC.p12                 and as PKCS#12, with the empty pass phrase
                                  unless --pass-phrase-file
        TOPIC.revoked.*           with --revoked: the same, but revoked
        TOPIC.expired.*           with --expired: the same, but expired yesterday
        crl.pem                   the revocation list

      All files but .p12 are PEM. Private keys in PEM are not encrypted; only the owner can read them (mode 0600). Keep \
      them out of repositories. Provider certificates are marked for both of Apple's environments.

      Run the command again in the same directory to add topics to the same authority. Existing files stay unchanged, \
      except for the revocation list, which is written again with all revoked certificates; a gateway certificate that \
      lacks a --server-name, which is issued again for exactly the given names; and PKCS#12 files of the given topics \
      when --pkcs12-legacy or --pass-phrase-file is given.

      Examples:
        apnscope identity --directory ids --topic com.example.app
        apnscope identity --directory ids --topic com.example.app --revoked
        apnscope identity --directory old --topic a --key rsa2048 --pkcs12-legacy
        apnscope identity --directory ids --topic a --server-name push.example.com
        openssl verify -CAfile ids/ca.pem ids/com.example.app.pem

      Exit codes: 0 done; 64 usage, or the existing authority has another name; 65 a file in the directory is damaged \
      or from another authority; 66 cannot open the pass phrase; 74 cannot read or write.
      """)

  @Option(
    help: ArgumentHelp("Directory for the files; created if it does not exist.", valueName: "path"),
    completion: .directory)
  var directory: String

  @Option(
    help: ArgumentHelp(
      "The topic of a provider, an app's bundle identifier. Repeatable. At most \(CertificateAuthority.maximumTopicLength) letters, digits, periods, hyphens and underscores.",
      valueName: "topic"))
  var topic: [String]

  @Option(
    help:
      "Kind of new keys: p256, or rsa2048 for clients without elliptic curves and for cipher suites with RSA key exchange."
  )
  var key = KeyKind.p256

  @Option(
    help: ArgumentHelp(
      "Another name or IP address of the gateway, for clients that connect to it by that name. Repeatable.",
      valueName: "name"))
  var serverName: [String] = []

  @Option(
    help: ArgumentHelp(
      "Common name of a new authority, for clients that check the issuer, e.g. 'Apple Worldwide Developer Relations Certification Authority'. Default: apnscope throw-away authority.",
      valueName: "name"))
  var authorityName: String?

  @Option(
    help: ArgumentHelp(
      "Organization of a new authority, e.g. 'Apple Inc.'. Default: none.", valueName: "name"))
  var authorityOrganization: String?

  @Flag(
    help:
      "Encrypt PKCS#12 files with 3DES and SHA-1, for clients without AES in PKCS#12: old Java, Mono, Ruby and Windows."
  )
  var pkcs12Legacy = false

  @Option(
    help: ArgumentHelp("A file whose first line is the pass phrase of the PKCS#12 files.", valueName: "file"),
    completion: .file())
  var passPhraseFile: String?

  @Flag(help: "Also create a revoked identity for each topic.")
  var revoked = false

  @Flag(help: "Also create an expired identity for each topic.")
  var expired = false

  @Option(
    help: ArgumentHelp(
      "Days from now that certificates are valid, 1 to \(Validity.maximumDays); they begin a day earlier. With the default, Apple's systems accept the gateway's too.",
      valueName: "days"))
  var days = Validity.usualDays

  @Flag(
    help:
      "Replace existing identities of the gateway and the given topics, with their keys. The authority stays."
  )
  var force = false

  func validate() throws {
    guard !directory.isEmpty else { throw ValidationError("--directory is empty.") }
    for topic in topic {
      do {
        try IdentityDirectory.check(topic: topic)
      } catch {
        throw ValidationError("--topic: \(error.message).")
      }
    }
    do {
      for name in serverName { try IdentityDirectory.check(serverName: name) }
      if let name { try IdentityDirectory.check(authorityName: name) }
    } catch {
      throw ValidationError("\(error.message).")
    }
    guard 1...Validity.maximumDays ~= days else {
      throw ValidationError("--days must be 1 to \(Validity.maximumDays) (got \(days)).")
    }
  }

  private var name: CertificateAuthority.Name? {
    authorityName == nil && authorityOrganization == nil
      ? nil : .init(commonName: authorityName, organization: authorityOrganization)
  }

  func run() throws {
    var order = IdentityDirectory.Order(topics: topic)
    order.keyKind = key
    order.days = days
    if revoked { order.states.insert(.revoked) }
    if expired { order.states.insert(.expired) }
    order.replacesExisting = force
    order.authorityName = name
    order.serverNames = serverName
    let passPhrase = try passPhraseFile.map { try PassPhraseFile.read($0) }
    if passPhrase != nil || pkcs12Legacy {
      order.pkcs12 = .init(passPhrase: passPhrase ?? [], isLegacy: pkcs12Legacy)
    }
    let entries: [IdentityDirectory.Entry]
    do {
      entries = try IdentityDirectory(directory).issue(order)
    } catch {
      complain(error.message)
      throw ExitStatus.code(for: error)
    }
    let outputs = try Outputs(nil, isDirectory: false)
    let write = try outputs.open()
    _ = write(Array(Self.text(of: entries).utf8).rawBytes)
    try outputs.check()
  }

  /// One line per entry: its kind, its files, and whether it is new.
  private static func text(of entries: [IdentityDirectory.Entry]) -> String {
    let titles = entries.map(title)
    let width = titles.map(\.count).max() ?? 0
    var text = ""
    for (entry, title) in zip(entries, titles) {
      let files = ([entry.file, entry.keyFile].compactMap { $0 } + entry.combinedFiles).joined(separator: " ")
      text += title + String(repeating: " ", count: width - title.count + 2) + files
      if let end = entry.notAfterUnixSeconds {
        let verb = end < time(nil) ? "ended" : "until"
        text += "  (\(entry.isNew ? "new" : "kept"), \(verb) \(day(end)))"
      }
      text += "\n"
    }
    return text
  }

  private static func title(of entry: IdentityDirectory.Entry) -> String {
    switch entry.subject {
    case .authority: "authority"
    case .gateway: "gateway"
    case .provider(let topic, .valid): "provider \(topic)"
    case .provider(let topic, let state): "provider \(topic), \(state.rawValue)"
    case .revocationList(let count): "revocation list, \(count) revoked"
    }
  }

  /// The day in UTC, as ISO 8601 writes it.
  private static func day(_ unixSeconds: Int) -> String {
    var (seconds, parts) = unsafe (time_t(unixSeconds), tm())
    unsafe gmtime_r(&seconds, &parts)
    let numbers = unsafe [Int(parts.tm_year) + 1_900, Int(parts.tm_mon) + 1, Int(parts.tm_mday)]
    return numbers.map { $0 < 10 ? "0\($0)" : "\($0)" }.joined(separator: "-")
  }
}

extension KeyKind: ExpressibleByArgument {}
