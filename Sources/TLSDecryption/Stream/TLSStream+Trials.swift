import Bytes
import TLSFoundation

/// Keys and a number that opened a record.
struct KeyMatch {
  var candidate: KeyCandidate
  var sequence: UInt64
  var opened: RecordDecryptor.Opened
}

/// Finds out by trying which keys and which number a record has.
extension TLSStream {
  /// Tries likely cases first: no missing records, the number in the nonce, new keys; then as many missing records as
  /// the bytes may have contained.
  func match(_ header: RecordHeader, _ fragment: RawSpan, _ direction: TLSDirection) -> KeyMatch? {
    let waiting = direction.keys.candidates
    guard let region = direction.records.region else {
      // RC4's key stream has moved on: only one attempt is possible, and it was made.
      if let active = direction.keys.active, !active.decryptor.isRC4,
        let match = attempt(active, active.decryptor.sequence, header, fragment, direction)
      {
        return match
      }
      for candidate in waiting { if let match = attempt(candidate, 0, header, fragment, direction) { return match } }
      return nil
    }
    let isUncertain = region.missing > 0 || region.isBeforeCapture || !region.isExact || region.lowest > 1
    if let active = direction.keys.active {
      let base = active.decryptor.sequence
      // An explicit nonce is not trusted: the missing bytes bound the number of records.
      if isUncertain, let likely = active.decryptor.likelySequence(fragment), likely >= base,
        likely - base <= UInt64(max(region.highest, 16)),
        let match = attempt(active, likely, header, fragment, direction)
      {
        return match
      }
      if let match = attempt(active, base &+ UInt64(region.lowest), header, fragment, direction) { return match }
    }
    for candidate in waiting { if let match = attempt(candidate, 0, header, fragment, direction) { return match } }
    return isUncertain ? search(region, waiting, header, fragment, direction) : nil
  }

  /// Few missing records are likelier than many, so all keys are tried with small numbers first. Large numbers are
  /// tried for ever fewer records that nothing fits, and not with the last attempts.
  private func search(
    _ region: SkippedRegion, _ waiting: [KeyCandidate], _ header: RecordHeader, _ fragment: RawSpan,
    _ direction: TLSDirection
  ) -> KeyMatch? {
    let isWide = direction.keys.countTrial()
    let active = direction.keys.active.flatMap { $0.decryptor.mayOpen(fragment, &secrets.workspace.output) ? $0 : nil }
    var from = 0
    for limit in [16, 256, 4_096, limits.maximumMissingRecords] {
      let to = min(limit, limits.maximumMissingRecords)
      if limit > 16 && (!isWide || direction.keys.attempts > limits.maximumAttempts / 2) { return nil }
      if let active {
        let lowest = region.isExact ? 0 : region.lowest
        let base = active.decryptor.sequence
        for more in from..<max(from, min(to, max(region.highest - lowest, 16) + 1)) {
          guard mayTry(direction), limit <= 16 || secrets.mayGuess() else { return nil }
          if let match = attempt(active, base &+ UInt64(lowest + more), header, fragment, direction) { return match }
        }
        if from == 0, let match = attemptNextKeys(after: active, header, fragment, direction) { return match }
      }
      for candidate in waiting where candidate.stage == .data || limit == 16 {
        guard candidate.decryptor.mayOpen(fragment, &secrets.workspace.output) else { continue }
        for number in max(from, 1)..<max(min(to, max(region.highest, 1) + 1), max(from, 1)) {
          guard mayTry(direction), limit <= 16 && !region.isBeforeCapture || secrets.mayGuess() else { return nil }
          if let match = attempt(candidate, UInt64(number), header, fragment, direction) { return match }
        }
      }
      from = to
    }
    return nil
  }

  private func mayTry(_ direction: TLSDirection) -> Bool { direction.keys.attempts <= limits.maximumAttempts }

  private func attempt(
    _ candidate: KeyCandidate, _ sequence: UInt64, _ header: RecordHeader, _ fragment: RawSpan,
    _ direction: TLSDirection
  ) -> KeyMatch? {
    if let opened = candidate.decryptor.open(header, fragment, sequence: sequence, into: &secrets.workspace.output) {
      return KeyMatch(candidate: candidate, sequence: sequence, opened: opened)
    }
    if direction.records.region != nil { direction.keys.countAttempt(fragment) }
    return nil
  }

  /// The message that changed the keys of TLS 1.3 may be missing.
  private func attemptNextKeys(
    after active: KeyCandidate, _ header: RecordHeader, _ fragment: RawSpan, _ direction: TLSDirection
  ) -> KeyMatch? {
    guard active.decryptor.version >= .tls13, active.stage == .data, let next = active.updated(draft: direction.draft)
    else {
      return nil
    }
    for number in 0..<min(256, UInt64(limits.maximumMissingRecords)) where mayTry(direction) {
      if let match = attempt(next, number, header, fragment, direction) { return match }
    }
    return nil
  }
}
