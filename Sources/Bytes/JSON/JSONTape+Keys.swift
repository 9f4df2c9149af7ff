/// Repeated keys of an object: the last one counts, the earlier ones are marked.
extension JSONTape {
  @inline(__always)
  mutating func markRepeatedKeys(ofObject object: Int, _ text: RawSpan) {
    let end = nodes.count
    var key = object + 1
    var members = 0
    while key < end {
      var other = object + 1
      while other < key {
        if haveSameText(other, key, text) { mark(other, again: key) }
        other = Int(nodes[other + 1].next)
      }
      members += 1
      if members == 16 { return markManyRepeatedKeys(ofObject: object, text) }
      key = Int(nodes[key + 1].next)
    }
  }

  @inline(never)
  private mutating func markManyRepeatedKeys(ofObject object: Int, _ text: RawSpan) {
    var latest: [[UInt8]: Int] = [:]
    var key = object + 1
    while key < nodes.count {
      if let other = latest.updateValue(key, forKey: stringBytes(key, text)) { mark(other, again: key) }
      key = Int(nodes[key + 1].next)
    }
  }

  private mutating func mark(_ key: Int, again: Int) {
    nodes[key].isRepeated = true
    let offset = Int(nodes[again].start)
    repeatedKey = min(repeatedKey ?? offset, offset)
  }

  @inline(__always)
  private func haveSameText(_ one: Int, _ other: Int, _ text: RawSpan) -> Bool {
    let (a, b) = (nodes[one], nodes[other])
    if a.hasEscapes || b.hasEscapes { return stringBytes(one, text) == stringBytes(other, text) }
    guard a.end - a.start == b.end - b.start else { return false }
    var (offset, compared) = (Int(a.start) + 1, Int(b.start) + 1)
    while offset < Int(a.end) {
      if text.byte(at: offset) != text.byte(at: compared) { return false }
      offset += 1
      compared += 1
    }
    return true
  }
}
