/// All key material of a run, including secrets learnt from one connection for others.
///
/// The connections of a run share it, so that sessions can be resumed across them; it is used by one thread. No secret
/// is ever part of a description or an error.
public final class Secrets {
  private let limits: TLSLimits
  private var keyLogs: [KeyLog] = []
  private(set) var serverKeys: [PrivateKey] = []
  private var sessions = SessionMemory()

  /// Called with each secret that decrypted something, as a line of a key log with its line feed.
  package var onUse: ((String) -> Void)?
  /// Asked once for secrets that come later in the capture file than the records that need them.
  package var late: (() -> [KeyLog])?
  /// The buffer in which all connections' records are decrypted, one after the other.
  let workspace = TLSWorkspace()

  /// Attempts that are left to guess keys and far numbers with.
  private var guesses: Int
  /// The results of `all`.
  private var lists: [KeyLogLabel: [KeyLogLine]] = [:]
  /// Bytes that all connections hold together.
  var heldBytes = 0

  /// Makes an empty collection of key material.
  ///
  /// - Parameter limits: the limits on secrets to try, and on attempts.
  public init(limits: TLSLimits = TLSLimits()) {
    self.limits = limits
    guesses = limits.maximumAttempts << 3
  }

  /// The same key material without what a pass learnt, for a second pass over a recording that finds the same secrets.
  package func unused() -> Secrets {
    let secrets = Secrets(limits: limits)
    for keyLog in keyLogs { secrets.add(keyLog) }
    for serverKey in serverKeys { secrets.add(serverKey) }
    return secrets
  }

  /// Whether another guess is allowed; each call uses up `cost` of the attempts.
  func mayGuess(costing cost: Int = 1) -> Bool {
    guard guesses > 0 else { return false }
    guesses -= cost
    return true
  }

  /// More secrets may come with the capture, which cannot be read ahead: a connection waits for its own.
  package var mayGrow = false
  /// Counts the key logs that came.
  private(set) var generation = 0

  /// Adds a key log. Its secrets are tried before those of earlier ones.
  public func add(_ keyLog: KeyLog) {
    keyLogs.append(keyLog)
    generation += 1
    lists = [:]
  }
  /// Adds a server's RSA key.
  public func add(_ serverKey: PrivateKey) { serverKeys.append(serverKey) }

  /// Lines with secrets in all key logs.
  var keyLogLines: Int { keyLogs.reduce(0) { $0 + $1.count } }
  var hasKeyLog: Bool { !keyLogs.isEmpty }
  var isEmpty: Bool { keyLogs.isEmpty && serverKeys.isEmpty }

  /// Reads the secrets in the rest of the capture file, after a search in vain.
  func readLate() -> Bool {
    guard let late else { return false }
    self.late = nil
    let found = late()
    for keyLog in found { add(keyLog) }
    return !found.isEmpty
  }

  /// The secrets for `key`, beginning with the last line of the last key log.
  func find(_ label: KeyLogLabel, _ key: [UInt8]) -> [[UInt8]] {
    var found: [[UInt8]] = []
    for keyLog in keyLogs.reversed() where found.count < limits.maximumCandidates {
      for secret in keyLog.secrets(label, for: key, limit: limits.maximumCandidates - found.count)
      where !found.contains(secret) { found.append(secret) }
    }
    return found
  }

  /// The lines with a label, at most `maximumCandidates`; for directions that began before the capture.
  func all(_ label: KeyLogLabel) -> [KeyLogLine] {
    if let lines = lists[label] { return lines }
    var lines: [KeyLogLine] = []
    for keyLog in keyLogs.reversed() where lines.count < limits.maximumCandidates {
      keyLog.forEach(label) {
        lines.append($0)
        return lines.count < limits.maximumCandidates
      }
    }
    lists[label] = lines
    return lines
  }

  /// The master secrets of pasted sessions: a session with a ticket has no identifier on the wire, so each secret may
  /// belong to any connection.
  var masters: [[UInt8]] {
    var masters: [[UInt8]] = []
    for keyLog in keyLogs where keyLog.isOfSessions && masters.count < limits.maximumCandidates {
      keyLog.forEach(.sessionID) {
        masters.append($0.secret)
        return masters.count < limits.maximumCandidates
      }
    }
    return masters
  }

  func use(_ line: KeyLogLine) { onUse?(line.text) }

  // MARK: sessions

  /// The original session that a resumed one continues.
  func session(_ identifier: [UInt8]) -> SessionMemory.Session? { sessions.find(identifier) }

  func remember(_ identifier: [UInt8], _ session: SessionMemory.Session) { sessions.remember(identifier, session) }

}

/// The buffer that holds a decrypted record until the next one is opened; each thread has its own.
package final class TLSWorkspace {
  var output = [UInt8](repeating: 0, count: 1 << 16)

  package init() {}
}

/// The latest sessions, by identifier or ticket.
struct SessionMemory {
  struct Session {
    var master: [UInt8]?
    var clientCertificate: ClientCertificate?
  }

  private static let maximum = 10_000
  private var sessions: [[UInt8]: Session] = [:]
  private var order: [[UInt8]] = []
  private var oldest = 0

  func find(_ identifier: [UInt8]) -> Session? { sessions[Self.key(identifier)] }

  /// A ticket may be long; its hash does.
  private static func key(_ identifier: [UInt8]) -> [UInt8] {
    identifier.count <= 32 ? identifier : HashFunction.sha256.hash(identifier)
  }

  mutating func remember(_ identifier: [UInt8], _ session: Session) {
    guard !identifier.isEmpty else { return }
    let identifier = Self.key(identifier)
    if let known = sessions[identifier] {
      // Known values are kept.
      sessions[identifier] = Session(
        master: session.master ?? known.master,
        clientCertificate: session.clientCertificate ?? known.clientCertificate)
      return
    }
    sessions[identifier] = session
    order.append(identifier)
    if order.count - oldest > Self.maximum {
      sessions[order[oldest]] = nil
      oldest += 1
      if oldest > Self.maximum {
        order.removeFirst(oldest)
        oldest = 0
      }
    }
  }
}
