/// The parts of a stream that runs have sent: `2/4`; in a merged result `1/4,3/4`; `all` in documents from before
/// complete streams were named.
struct Segments {
  private(set) var numbers: [Int: Int] = [:]
  /// The number of parts that the stream was cut into.
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

  /// The segments as in a plan, with repetitions. All of them are named even if complete, so that a later merge knows
  /// their number.
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

  /// Whether a text is one of `warnings`, which further parts may invalidate.
  static func isWarning(_ text: String) -> Bool {
    text.hasPrefix(missingWarning) || text.hasPrefix(repeatedWarning)
  }

  private static let missingWarning = "segments are missing: "
  private static let repeatedWarning = "segments are there more than once, and count as often: "

  static func list(_ names: [String]) -> String {
    names.prefix(10).joined(separator: ", ") + (names.count > 10 ? " and \(names.count - 10) more" : "")
  }
}
