/// Counts by name. In JSON an object: `{"lifetime":1,"rejected":3}`.
///
/// Unknown names, e.g. those of a later apnscope, are kept. It is not a dictionary with typed keys, because snake-case
/// coders change the keys of all dictionaries except those with String keys.
public struct NamedCounts<Name: RawRepresentable & Hashable & Sendable>: Sendable, Equatable
where Name.RawValue == String {
  public var byName: [String: Int]

  public init(byName: [String: Int] = [:]) { self.byName = byName }

  public var isEmpty: Bool { byName.isEmpty }

  /// The count of a name; `nil`: not counted, which differs from 0.
  public subscript(name: Name) -> Int? {
    get { byName[name.rawValue] }
    set { byName[name.rawValue] = newValue }
  }

  public subscript(name: Name, default value: Int) -> Int {
    get { byName[name.rawValue, default: value] }
    set { byName[name.rawValue] = newValue }
  }

  /// The sum of all counts.
  public var sum: Int { byName.values.reduce(0, +) }

  /// The counts above 0.
  public var positive: NamedCounts { NamedCounts(byName: byName.filter { $0.value > 0 }) }

  /// Names and counts, sorted by name.
  public var sorted: [(name: String, count: Int)] {
    byName.sorted { $0.key < $1.key }.map { (name: $0.key, count: $0.value) }
  }

  /// Names and counts, the highest count first; equal counts are sorted by name.
  public var byCount: [(name: String, count: Int)] {
    byName.sorted { ($1.value, $0.key) < ($0.value, $1.key) }.map { (name: $0.key, count: $0.value) }
  }

  public mutating func merge(_ other: NamedCounts, _ combine: (Int, Int) -> Int) {
    byName.merge(other.byName, uniquingKeysWith: combine)
  }

  public func merging(_ other: NamedCounts, _ combine: (Int, Int) -> Int) -> NamedCounts {
    NamedCounts(byName: byName.merging(other.byName, uniquingKeysWith: combine))
  }
}

/// Sorted by name, so that equal counts have equal texts.
extension NamedCounts: CustomStringConvertible {
  public var description: String { "[\(sorted.map { "\($0.name): \($0.count)" }.joined(separator: ", "))]" }
}

extension NamedCounts: ExpressibleByDictionaryLiteral {
  public init(dictionaryLiteral elements: (Name, Int)...) {
    byName = Dictionary(elements.map { ($0.rawValue, $1) }) { _, last in last }
  }
}

extension NamedCounts: Codable {
  public init(from decoder: any Decoder) throws {
    byName = try decoder.singleValueContainer().decode([String: Int].self)
  }

  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(byName)
  }
}
