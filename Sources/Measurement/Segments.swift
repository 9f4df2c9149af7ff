/// Which parts of a stream a run has sent: `2/4`, of a merged one `1/4,3/4`; `all` in documents from before complete ones
/// were named.
struct Segments {
  private(set) var numbers: [Int: Int] = [:]
  /// How many parts the stream was cut into.
  let count: Int

  /// `nil` when the text names none.
  init?(_ text: String) {
    if text == "all" {
      (numbers, count) = ([1: 1], 1)
      return
    }
    var count: Int?
    for part in text.split(separator: ",", omittingEmptySubsequences: false) {
      let words = part.split(separator: "/", omittingEmptySubsequences: false).map { Int($0) }
      guard words.count == 2, let number = words[0], let whole = words[1], whole >= 1, whole <= 1_000_000,
        (1...whole).contains(number), count == nil || count == whole
      else { return nil }
      count = whole
      numbers[number, default: 0] += 1
    }
    guard let count else { return nil }
    self.count = count
  }

  mutating func add(_ other: Segments) { numbers.merge(other.numbers, uniquingKeysWith: +) }

  var missing: [String] { (1...count).filter { numbers[$0] == nil }.map { "\($0)/\(count)" } }
  /// The repeated segments.
  var repeated: [String] { numbers.filter { $0.value > 1 }.keys.sorted().map { count == 1 ? "all" : "\($0)/\(count)" } }

  /// As in a plan, with repetitions. All segments are named even if complete, so that a later merge knows the number of
  /// parts.
  var text: String {
    numbers.sorted { $0.key < $1.key }
      .flatMap { Array(repeating: "\($0.key)/\(count)", count: $0.value) }.joined(separator: ",")
  }

  /// Warnings about missing and repeated segments.
  var warnings: [String] {
    var warnings: [String] = []
    if !missing.isEmpty { warnings.append("\(Self.missingWarning)\(Self.list(missing))") }
    if !repeated.isEmpty { warnings.append("\(Self.repeatedWarning)\(Self.list(repeated))") }
    return warnings
  }

  /// Whether the stream was cut at all.
  var isDivided: Bool { count > 1 }

  /// Whether it is one of `warnings`, which holds no more when others are added.
  static func isWarning(_ text: String) -> Bool {
    text.hasPrefix(missingWarning) || text.hasPrefix(repeatedWarning)
  }

  private static let missingWarning = "segments are missing: "
  private static let repeatedWarning = "segments are there more than once, and count as often: "

  static func list(_ names: [String]) -> String {
    names.prefix(10).joined(separator: ", ") + (names.count > 10 ? " and \(names.count - 10) more" : "")
  }
}
