import Bytes

/// The keys of one direction as far as they are known, and the attempts spent on finding them.
///
/// ```
/// clear     → sealed      a ChangeCipherSpec, or the first sealed record (`seal`)
/// sealed    → collected   the secrets have keys that may fit (`collect`)
/// collected → active      one of them has opened a record (`use`)
/// active    → active      keys of a later stage have, or the sender has updated them (`update`)
/// active    → collected   a stage of TLS 1.3 is over (`leave`)
/// any       → sealed      ChangeCipherSpec (`change`); the keys are not the right ones, or not needed any more (`drop`)
/// ```
struct KeySearch {
  enum State {
    /// Records are not sealed yet.
    case clear
    /// Records are sealed, and no keys are collected that may open them.
    case sealed
    /// Keys none of which has decrypted a record yet, in the order of their stages.
    case collected([KeyEpoch])
    /// The keys that decrypted the last record, and those that may be used after them.
    case active(KeyCandidate, later: [KeyEpoch])
  }

  private(set) var state = State.clear
  /// The secrets that there were when keys were last looked for, found or not.
  var generation = 0
  /// Keys were guessed among all, and no record has failed since. Guessed keys are derived again for each record,
  /// because there may be thousands.
  var isGuessing = false
  /// The last message of the handshake was opened: data follows.
  private(set) var hasFinished = false
  /// The bytes that the last keys in use add to a record, for records that are counted without being opened.
  private(set) var overhead = 0
  /// Failed attempts to decrypt records, less those that were forgiven.
  private(set) var attempts = 0
  /// Records that were tried with more than one sequence number since the last success.
  private(set) var trials = 0

  // MARK: known properties

  var isSealed: Bool { if case .clear = state { false } else { true } }
  /// Keys must be collected before a record can be opened.
  var isWithoutKeys: Bool { if case .sealed = state { true } else { false } }

  var active: KeyCandidate? { if case .active(let candidate, _) = state { candidate } else { nil } }

  /// Keys that are not in use and may come into use.
  var candidates: [KeyCandidate] { epochs.flatMap(\.candidates) }

  private var epochs: [KeyEpoch] {
    switch state {
    case .clear, .sealed: []
    case .collected(let epochs), .active(_, let epochs): epochs
    }
  }

  /// There are no keys for application data.
  var lacksKeys: Bool {
    guard case .collected(let epochs) = state else { return false }
    return !epochs.contains { $0.stage == .data && !$0.candidates.isEmpty }
  }

  /// Bytes of the shortest record that may be missing.
  var shortestRecord: Int { active?.decryptor.shortestRecord ?? 22 }

  /// The form of the records to come.
  var expectation: RecordExpectation {
    RecordExpectation(keyVersion: active?.decryptor.version, isBeforeData: !hasFinished)
  }

  /// Notes the bytes before a record, for all keys that may open it.
  func noteEnd(_ bytes: RawSpan) {
    active?.decryptor.noteEnd(bytes)
    for epoch in epochs { for candidate in epoch.candidates { candidate.decryptor.noteEnd(bytes) } }
  }

  // MARK: transitions

  /// Records are sealed from here on, if they were not before.
  mutating func seal() { if case .clear = state { state = .sealed } }

  /// Adds keys that may decrypt the next record. Keys in use stay in use.
  mutating func collect(_ epochs: [KeyEpoch]) {
    if case .active(let candidate, _) = state {
      state = .active(candidate, later: epochs)
    } else {
      state = .collected(epochs)
    }
  }

  /// Notes that these keys have decrypted a record. Keys of earlier stages do not recur.
  mutating func use(_ candidate: KeyCandidate) {
    guard active !== candidate else { return }
    state = .active(candidate, later: epochs(after: candidate.stage))
    if candidate.stage == .data { hasFinished = true }
    overhead = candidate.decryptor.overhead
  }

  /// The sender has updated the keys in use.
  mutating func update(to candidate: KeyCandidate) {
    if case .active(_, let later) = state { state = .active(candidate, later: later) }
  }

  /// A stage of TLS 1.3 is over.
  mutating func leave(_ stage: KeyEpoch.Stage) {
    state = .collected(epochs(after: stage))
    if stage == .handshake { hasFinished = true }
  }

  /// The next record has keys of another handshake.
  mutating func change() {
    state = .sealed
    hasFinished = false
  }

  /// Drops keys that are wrong, or no longer needed.
  mutating func drop() { state = .sealed }

  /// Drops guessed keys after none of them has decrypted a record.
  mutating func forgetGuesses() {
    state = .sealed
    isGuessing = false
  }

  private func epochs(after stage: KeyEpoch.Stage) -> [KeyEpoch] {
    epochs.filter { $0.stage.rawValue > stage.rawValue }
  }

  /// Tries the keys that are not in use alone; `takeUp` goes back.
  mutating func setAside() { if case .active(_, let later) = state { state = .collected(later) } }

  /// Goes on with keys that were in use, and no others.
  mutating func takeUp(_ candidate: KeyCandidate) { state = .active(candidate, later: []) }

  /// Assumes the overhead of future keys while none are in use: it applies to earlier bytes.
  mutating func foresee(_ candidate: KeyCandidate) {
    if active == nil { overhead = candidate.decryptor.overhead }
  }

  // MARK: cost

  /// Counts a failed attempt. A long record takes longer: with some ciphers, as long as hundreds of short ones.
  mutating func countAttempt(_ fragment: RawSpan) { attempts += 1 + fragment.byteCount >> 10 }

  /// Counts a record that is tried with more than one sequence number. Returns whether distant numbers may be tried,
  /// too: for ever fewer records.
  mutating func countTrial() -> Bool {
    trials += 1
    return trials & (trials - 1) == 0
  }

  /// A record that opens forgives the attempts that few losses cost, so that the work stays in proportion to the records.
  mutating func forgive() {
    attempts = max(0, attempts - 256)
    trials = 0
  }
}
