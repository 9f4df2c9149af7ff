/// Finds the known key that an unknown one resembles.
///
/// Names are compared in normal form, in lower case and without `-`, `_`, `.` and spaces, by the number of insertions,
/// deletions, substitutions and swaps of neighbours. It runs only for payloads with a fault.
enum KeyLikeness {
  /// The known key that `name`, a key in a dictionary of `level`, resembles most.
  static func best(for name: String, in level: PayloadKey.Level) -> PayloadKey? {
    let form = normalForm(name)
    var best: (key: PayloadKey, distance: Int)?
    for (key, known) in known {
      let limit = known.count <= 5 ? 1 : 2
      guard let distance = distance(form, known, atMost: limit) else { continue }
      guard let other = best else {
        best = (key, distance)
        continue
      }
      let isBetter =
        if distance != other.distance {
          distance < other.distance
        } else if (key.level == level) != (other.key.level == level) {
          key.level == level
        } else {
          key.name.description < other.key.name.description
        }
      if isBetter { best = (key, distance) }
    }
    return best?.key
  }

  private static let known = PayloadKey.allCases.map { (key: $0, form: normalForm($0.name.description)) }

  /// Whether the name of a dictionary was meant to be `aps`.
  static func isLikeAPS(_ name: String) -> Bool {
    let form = normalForm(name)
    return form.count <= 4 && distance(form, Array("aps".unicodeScalars), atMost: 1) != nil
  }

  static func normalForm(_ name: String) -> [Unicode.Scalar] {
    name.lowercased().unicodeScalars.filter { $0 != "-" && $0 != "_" && $0 != "." && $0 != " " }
  }

  /// The number of edits between two names, or `nil` where it is above `limit`.
  ///
  /// Without an allocation: a payload may have hundreds of unknown keys.
  private static func distance(_ a: [Unicode.Scalar], _ b: [Unicode.Scalar], atMost limit: Int) -> Int? {
    guard abs(a.count - b.count) <= limit, b.count < 24 else { return nil }
    var beforeLast = InlineArray<24, Int>(repeating: 0)
    var last = InlineArray<24, Int> { $0 }
    for i in 0..<a.count {
      var row = InlineArray<24, Int>(repeating: i + 1)
      for j in 0..<b.count {
        var edits = min(last[j + 1] + 1, row[j] + 1, last[j] + (a[i] == b[j] ? 0 : 1))
        if i > 0, j > 0, a[i] == b[j - 1], a[i - 1] == b[j] { edits = min(edits, beforeLast[j - 1] + 1) }
        row[j + 1] = edits
      }
      beforeLast = last
      last = row
    }
    return last[b.count] <= limit ? last[b.count] : nil
  }
}
