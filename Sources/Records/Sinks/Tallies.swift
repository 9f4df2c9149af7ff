import Bytes

/// The tallies of open connections, by number. Numbers ascend, so an array is enough, from which ended connections are
/// removed at the beginning.
///
/// Inlinable, so that it is specialised in the modules that keep tallies: it is used with every notification.
@usableFromInline
package struct Tallies<Tally> {
  @usableFromInline var first = 1
  @usableFromInline var tallies: [Tally] = []
  @usableFromInline var hasEnded: [Bool] = []
  @usableFromInline var ended = 0
  /// The entry of a connection that has ended.
  @usableFromInline let blank: Tally

  @inlinable
  package init(blank: Tally) { self.blank = blank }

  @inlinable
  package mutating func add(_ tally: Tally, number: Int) {
    if ended == tallies.count {
      (first, ended) = (number, 0)
      tallies.removeAll(keepingCapacity: true)
      hasEnded.removeAll(keepingCapacity: true)
    }
    // When records are read back, some may be missing and others late: skipped numbers count as ended.
    if number < first {
      tallies.insert(contentsOf: repeatElement(blank, count: first - number), at: 0)
      hasEnded.insert(contentsOf: repeatElement(true, count: first - number), at: 0)
      ended += first - number
      first = number
    }
    while tallies.count <= number - first {
      tallies.append(blank)
      hasEnded.append(true)
      ended += 1
    }
    tallies[number - first] = tally
    hasEnded[number - first] = false
    ended -= 1
  }

  /// The index of the connection's tally, valid until the next `add` or `remove`; `nil` if the connection has ended.
  @inlinable @inline(__always)
  package func index(of number: Int) -> Int? {
    let index = number - first
    return index >= 0 && index < tallies.count && !hasEnded[index] ? index : nil
  }

  /// Begins to fetch a connection's tally, which is wanted soon.
  @inlinable @inline(__always)
  package func prefetch(_ number: Int) {
    let index = number - first
    tallies.prefetch(index..<index + 1)
  }

  /// Calls `body` with the tally of every open connection.
  @inlinable
  package func forEachOpen(_ body: (Tally) -> Void) {
    for index in tallies.indices where !hasEnded[index] { body(tallies[index]) }
  }

  @inlinable package subscript(index: Int) -> Tally {
    @inline(__always) get { tallies[index] }
    @inline(__always) _modify { yield &tallies[index] }
  }

  @inlinable
  package mutating func remove(_ number: Int) -> Tally? {
    guard let index = index(of: number) else { return nil }
    let tally = tallies[index]
    tallies[index] = blank
    hasEnded[index] = true
    ended += 1
    if ended >= 64 && ended * 2 >= tallies.count {
      let prefix = hasEnded.prefix { $0 }.count
      tallies.removeFirst(prefix)
      hasEnded.removeFirst(prefix)
      first += prefix
      ended -= prefix
    }
    return tally
  }
}
