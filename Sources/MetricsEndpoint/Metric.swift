/// One metric of a program, with a sample for each set of labels.
public struct Metric: Sendable, Equatable {
  /// The metric's type in Prometheus.
  public enum Kind: String, Sendable {
    /// A value that only grows while the program runs; by convention its name ends in `_total`.
    case counter
    /// A value that goes up and down.
    case gauge
    /// Counts of values up to some bounds, which only grow; its samples are histograms.
    case histogram
  }

  /// A count stays an integer, exact over the whole range of `Int`; anything measured is a `Double`.
  public enum Value: Sendable, Equatable, ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral {
    case integer(Int)
    case real(Double)
    /// Of a metric of kind `histogram`.
    case histogram(Histogram)

    /// A count.
    public init(integerLiteral value: Int) { self = .integer(value) }
    /// A measured value.
    public init(floatLiteral value: Double) { self = .real(value) }
  }

  /// How many values there were up to each of some bounds: histograms of several processes add up, quantiles do not.
  public struct Histogram: Sendable, Equatable {
    /// A bound, and how many values were not above it, those up to lower bounds included.
    public struct Bucket: Sendable, Equatable {
      /// The bound, in the unit of the metric's name.
      public var bound: Double
      /// The number of values up to the bound.
      public var count: Int

      /// A bucket.
      public init(upTo bound: Double, _ count: Int) { (self.bound, self.count) = (bound, count) }
    }

    /// The buckets, by ascending bounds, without the one of all values.
    public var buckets: [Bucket]
    /// The sum of all values.
    public var sum: Double
    /// The number of all values.
    public var count: Int

    /// A histogram.
    public init(_ buckets: [Bucket], sum: Double, count: Int) {
      (self.buckets, self.sum, self.count) = (buckets, sum, count)
    }
  }

  /// The value for one set of labels.
  public struct Sample: Sendable, Equatable {
    /// The labels, by name.
    public var labels: [LabelName: String]
    /// The value at the time of the request.
    public var value: Value

    /// Label values may be any text, also from untrusted sources: they are escaped when they are written.
    public init(labels: [LabelName: String] = [:], _ value: Value) {
      self.labels = labels
      self.value = value
    }
  }

  /// The name, which is unique on a page.
  public var name: Name
  /// A sentence for readers of the page; may be empty.
  public var help: String
  /// The type in Prometheus.
  public var kind: Kind
  /// Two samples must not have the same labels: scrapers keep one of them, or none.
  public var samples: [Sample]

  /// A metric with any number of samples.
  public init(_ kind: Kind, _ name: Name, help: String, samples: [Sample]) {
    self.name = name
    self.help = help
    self.kind = kind
    self.samples = samples
  }

  /// A metric with a single value and no labels.
  public init(_ kind: Kind, _ name: Name, help: String, _ value: Value) {
    self.init(kind, name, help: help, samples: [Sample(value)])
  }

  /// A metric's name: a letter, `_` or `:`, then these and digits.
  ///
  /// An invalid literal is a programming error and traps; use `init(validating:)` for other text.
  public struct Name: Sendable, Hashable, ExpressibleByStringLiteral, CustomStringConvertible {
    /// The name as text.
    public let description: String

    /// A name from text; `nil` if it is invalid.
    public init?(validating text: String) {
      guard isName(text, colonAllowed: true) else { return nil }
      description = text
    }

    /// A name from a literal; an invalid one traps.
    public init(stringLiteral text: StaticString) {
      description = text.description
      precondition(isName(description, colonAllowed: true), "not the name of a metric")
    }
  }

  /// A label's name: a letter or `_`, then these and digits; names that begin with `__` belong to Prometheus itself.
  ///
  /// An invalid literal is a programming error and traps; use `init(validating:)` for other text.
  public struct LabelName: Sendable, Hashable, Comparable, ExpressibleByStringLiteral, CustomStringConvertible {
    /// The name as text.
    public let description: String

    /// A name from text; `nil` if it is invalid.
    public init?(validating text: String) {
      guard isName(text, colonAllowed: false), !text.hasPrefix("__") else { return nil }
      description = text
    }

    /// A name from a literal; an invalid one traps.
    public init(stringLiteral text: StaticString) {
      description = text.description
      precondition(LabelName(validating: description) != nil, "not the name of a label")
    }

    public static func < (a: LabelName, b: LabelName) -> Bool { a.description < b.description }
  }
}

private func isName(_ text: String, colonAllowed: Bool) -> Bool {
  func begins(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "_"): true
    case UInt8(ascii: ":"): colonAllowed
    default: false
    }
  }
  guard let first = text.utf8.first, begins(first) else { return false }
  return text.utf8.allSatisfy { begins($0) || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
}
