import ArgumentParser
import Bytes
import CommandFiles
import LoadTest
import Reporting
import TLSTransport

/// A provider's certificate and key, where they come from.
struct ProviderIdentity {
  /// As typed.
  var path: String
  /// Where the path is a directory.
  var directory: IdentityDirectory?
  var identity: Identity
}

extension TargetOptions {
  /// Whether the command line asks for several identities.
  var hasSeveral: Bool { identity.count > 1 || topic.count > 1 }

  func validateIdentities() throws {
    if !identity.isEmpty, plain { throw ValidationError("--identity and --plain exclude each other.") }
    guard hasSeveral else { return }
    if plain {
      throw ValidationError(
        "--plain and several identities exclude each other: without TLS no certificate names a topic.")
    }
    if key != nil {
      throw ValidationError("--key and several identities exclude each other: give PEM files that have their keys.")
    }
    for (name, values) in [("identity", identity), ("topic", topic)] {
      guard let again = Set(values).first(where: { value in values.count { $0 == value } > 1 }) else { continue }
      throw ValidationError("--\(name) \(again) is given twice.")
    }
    guard max(identity.count, topic.count) <= LoadPlan.maximumTopics else {
      throw ValidationError(
        "\(max(identity.count, topic.count)) identities: at most \(LoadPlan.maximumTopics), because each takes a thread."
      )
    }
  }

  /// Throws when the command line asks for several identities, which a command, or an option, has no use for.
  func requireOneIdentity(for what: String, _ reason: String) throws {
    guard hasSeveral else { return }
    throw ValidationError("\(what) and several identities exclude each other: \(reason).")
  }

  /// The identities; none without TLS. Complains and throws an exit code if one cannot be read.
  func identities() throws -> [ProviderIdentity] {
    // `--topic` may be for any directory that has it.
    var wanted = Set(topic)
    var found: [ProviderIdentity] = []
    for path in identity {
      do {
        let (identities, used) = try identities(of: path)
        found += identities
        wanted.subtract(used)
      } catch let error as TLSError {
        throw complaining(of: error, path)
      }
    }
    if hasSeveral, let missing = topic.first(where: wanted.contains) {
      throw ValidationError(
        "\(identity.joined(separator: ", ")) \(identity.count == 1 ? "holds" : "hold") no certificate of topic '\(missing)'."
      )
    }
    return found
  }

  /// The identities of a path, and which of `--topic` they are for.
  private func identities(of path: String) throws -> ([ProviderIdentity], used: [String]) {
    guard Paths.isDirectory(path) else {
      let phrase = try passPhraseFile.map { try PassPhraseFile.read($0) }
      return ([ProviderIdentity(path: path, identity: try Identity(file: path, keyFile: key, passPhrase: phrase))], [])
    }
    let directory = IdentityDirectory(path)
    let topics = try directory.topics()
    var chosen = topic.filter(topics.contains)
    if chosen.isEmpty, let only = topics.first, topics.count == 1, topic.isEmpty || identity.count > 1 {
      chosen = [only]
    }
    guard !chosen.isEmpty else { throw ValidationError(nothingChosen(in: path, topics)) }
    // In their order: it is that of the topics of the run.
    let identities = try chosen.map {
      ProviderIdentity(path: path, directory: directory, identity: try directory.provider(topic: $0))
    }
    return (identities, chosen)
  }

  private func nothingChosen(in path: String, _ topics: [String]) -> String {
    let others = topics.isEmpty ? "no provider certificates" : topics.joined(separator: ", ")
    if topic.count == 1 || identity.count > 1, let topic = topic.first {
      return "\(path) holds no certificate of topic '\(topic)'; it has \(others)."
    }
    if !topic.isEmpty { return "\(path) holds no certificate of a --topic; it has \(others)." }
    if topics.isEmpty { return "\(path) holds no provider's certificate." }
    return
      "\(path) holds several topics; choose one with --topic, or several with --payload-file: \(topics.joined(separator: ", "))."
  }

  /// The contexts of the topics of a plan, by topic.
  ///
  /// - Parameter isDryRun: nothing is written.
  func contexts(of topics: [String], isDryRun: Bool = false) throws -> [String: TLSContext] {
    var contexts: [String: TLSContext] = [:]
    for (identity, context) in try allContexts(isDryRun: isDryRun) {
      if let topic = identity.identity.topic, topics.contains(topic) { contexts[topic] = context }
    }
    return contexts
  }
}

extension TargetOptions {
  /// Keeps of the listed payloads those of the topics that the run pushes to, which certificates decide; says how many
  /// are of other topics, and throws when none is left for one of the identities.
  ///
  /// Without TLS no certificate names a topic: payloads of several topics cannot be told apart by the gateway, and are
  /// refused.
  func selectTopics(of file: String?, in plan: inout LoadPlan) throws {
    guard hasSeveral else { return try selectTopic(of: file, in: &plan) }
    let identities = try identities()
    var topics: [String] = []
    for identity in identities {
      guard let topic = identity.identity.topic else {
        throw ValidationError(
          "\(identity.path): the certificate names no topic; of several identities each has to, so that payloads go with it."
        )
      }
      if let index = topics.firstIndex(of: topic) {
        throw ValidationError(
          "\(identities[index].path) and \(identity.path) are both for the topic \(topic); give one of them, and more --connections."
        )
      }
      topics.append(topic)
    }
    guard let file, case .listed(var list) = plan.workload.payload, !list.topics.isEmpty else {
      throw ValidationError(
        "Several identities need --payload-file with a topic in its entries, as {\"payload\": {…}, \"topic\": \"\(topics[0])\"}: the topic decides which certificate a payload goes with."
      )
    }
    let others = list.select(topics: topics)
    for (identity, topic) in zip(identities, topics) where !list.hasWeight(ofTopic: topic) {
      let there = list.topics.sorted().joined(separator: ", ")
      complain(
        "\(file): no payload is for the topic \(topic) of \(identity.path)\(there.isEmpty ? "" : "; the file has payloads for \(there)"); leave that identity out"
      )
      throw ExitStatus.damaged
    }
    sayNotSent(others, of: list, "\(file)", topics.joined(separator: " and "))
    plan.workload.payload = .listed(list)
    plan.topics = topics
  }

  private func selectTopic(of file: String?, in plan: inout LoadPlan) throws {
    guard let file, case .listed(var list) = plan.workload.payload, !list.topics.isEmpty else { return }
    let topics = list.topics.sorted().joined(separator: ", ")
    guard let topic = try identities().first?.identity.topic else {
      guard list.topics.count > 1 else { return }
      throw ValidationError(
        "\(file) has payloads of several topics (\(topics)); \(plain ? "without TLS there is none" : "the certificate names none")."
      )
    }
    let others = list.select(topics: [topic])
    guard list.entries.contains(where: { $0.weight > 0 }) else {
      complain("\(file): no payload is for the topic \(topic) of the identity; the file has payloads for \(topics)")
      throw ExitStatus.damaged
    }
    sayNotSent(others, of: list, file, topic)
    plan.workload.payload = .listed(list)
  }

  private func sayNotSent(_ others: Int, of list: PayloadList, _ file: String, _ topics: String) {
    guard others > 0 else { return }
    complain(
      "\(file): \(grouped(others)) of \(grouped(others + list.entries.count)) payloads are for other topics than \(topics), and are not sent"
    )
  }
}
