import ArgumentParser
import Bytes
import GatewaySimulator
import Measurement
import TLSFoundation
import TLSTransport

/// A value with a notation, which the error shows for other input.
protocol Quantity: ExpressibleByArgument {
  /// The expected notation, with examples: "a time, e.g. 250ms, 2s, 10m or 1h".
  static var notation: String { get }
  /// The likely intended value of invalid text: 2s for "2"; `nil` if unknown.
  static func guess(_ text: String) -> String?
}

extension Quantity {
  /// For `@Option(transform:)`.
  @Sendable static func parse(_ text: String) throws -> Self {
    guard let value = Self(argument: text) else {
      throw ValidationError("expected \(notation)" + (guess(text).map { "; did you mean \($0)?" } ?? ""))
    }
    return value
  }

  static func guess(_ text: String) -> String? { nil }
}

extension Option where Value: Quantity {
  /// An option whose default is named once, and shown in its help.
  init(
    wrappedValue: Value, name: NameSpecification = .long, _ abstract: String, valueName: String
  ) {
    self.init(
      wrappedValue: wrappedValue, name: name,
      help: ArgumentHelp(abstract, valueName: valueName, default: wrappedValue), transform: Value.parse)
  }
}

extension ArgumentHelp {
  /// Writes the default into the help, which the library leaves out for an option with a transformation.
  init(_ abstract: String, valueName: String, default value: some Quantity) {
    self.init("\(abstract) (default: \(value.defaultValueDescription))", valueName: valueName)
  }
}

/// A duration as typed: 250ms, 2s, 10m, 1h, 1m30s. A number alone has no unit and is refused.
struct TimeSpan: Quantity {
  static let notation = "a time, e.g. 250ms, 2s, 1m30s or 1h, up to 100d"
  /// Nothing waits longer; sums and products of times in nanoseconds stay in 64 bits.
  static let longest = Duration.seconds(100 * 86_400)

  var duration: Duration

  init(_ duration: Duration) { self.duration = duration }

  /// Exact to the nanosecond, so that parsing it gives the same value.
  var defaultValueDescription: String {
    Units.times.text(Int(nearest: (duration / .nanoseconds(1)).rounded()), in: ["s", "ms", "us", "ns"])
  }

  init?(argument: String) {
    guard let nanoseconds = Units.nanoseconds(argument) else { return nil }
    guard nanoseconds <= Self.longest / .nanoseconds(1) else { return nil }
    duration = .nanoseconds(Int64(nanoseconds))
  }

  static func guess(_ text: String) -> String? { TimeSpan(argument: text + "s").map { _ in text + "s" } }
}

/// Two durations, or one that is both: 100ms..800ms.
struct TimeSpanRange: Quantity {
  static let notation = "a time, e.g. 250ms or 2s, or a range, e.g. 100ms..800ms, up to 100d"

  var durations: ClosedRange<Duration>

  init?(argument: String) {
    guard let parts = bounds(argument), let low = TimeSpan(argument: parts.low),
      let high = TimeSpan(argument: parts.high),
      low.duration <= high.duration
    else { return nil }
    durations = low.duration...high.duration
  }
}

/// A number of bytes as typed: 4096, 16KB (1,000 each), 16KiB (1,024 each), 1MB, 1MiB.
struct ByteCount: Quantity {
  static let notation = "bytes, e.g. 4096, 64KiB or 1MB"

  var bytes: Int

  init(_ bytes: Int) { self.bytes = bytes }

  var defaultValueDescription: String {
    bytes > 0 ? Units.sizes.text(bytes, in: ["MiB", "KiB"]) : "\(bytes)"
  }

  init?(argument: String) {
    let number = argument.prefix { $0.isNumber || $0 == "." }
    guard let value = Double(number), value >= 0 else { return nil }
    let name = argument.dropFirst(number.count)
    guard let unit = name.isEmpty ? 1 : Units.sizes.size(of: name) else { return nil }
    guard value * unit <= 1e15, (value * unit).rounded() == value * unit else { return nil }
    bytes = Int(value * unit)
  }
}

/// Two sizes, or one that is both: 100..2KB.
struct ByteRange: Quantity {
  static let notation = "bytes, e.g. 100, 2KB or 1KiB, or a range, e.g. 100..2KB"

  var bytes: ClosedRange<Int>

  init?(argument: String) {
    guard let parts = bounds(argument), let low = ByteCount(argument: parts.low),
      let high = ByteCount(argument: parts.high),
      low.bytes <= high.bytes
    else { return nil }
    bytes = low.bytes...high.bytes
  }
}

/// Two whole numbers, or one that is both: 32..100.
struct NumberRange: Quantity {
  static let notation = "a whole number, e.g. 32, or a range, e.g. 32..100"

  var numbers: ClosedRange<Int>

  init(_ numbers: ClosedRange<Int>) { self.numbers = numbers }

  var defaultValueDescription: String {
    numbers.lowerBound == numbers.upperBound ? "\(numbers.lowerBound)" : "\(numbers.lowerBound)..\(numbers.upperBound)"
  }

  init?(argument: String) {
    guard let parts = bounds(argument), let low = Int(parts.low), let high = Int(parts.high), 0 <= low, low <= high
    else {
      return nil
    }
    numbers = low...high
  }
}

/// A share of a whole: 0.001, 1e-4, 5%.
struct Share: Quantity {
  static let notation = "a share from 0 to 1, e.g. 0.01, or from 0% to 100%, e.g. 1%"

  var value: Double

  init?(argument: String) {
    guard let value = Units.share(argument), (0...1).contains(value) else { return nil }
    self.value = value
  }
}

/// HOST:PORT, or [ADDRESS]:PORT for IPv6.
struct ListeningAddress: Quantity {
  static let notation = "HOST:PORT, or [ADDRESS]:PORT for IPv6, with a port from 0 to 65535"

  var address: SimulatorOptions.Address

  init(_ address: SimulatorOptions.Address) { self.address = address }

  var defaultValueDescription: String { "\(address)" }

  init?(argument: String) {
    guard let colon = argument.lastIndex(of: ":"), let port = UInt16(argument[argument.index(after: colon)...]) else {
      return nil
    }
    var host = argument[..<colon]
    if host.hasPrefix("["), host.hasSuffix("]") {
      host = host.dropFirst().dropLast()
    } else if host.contains(":") {
      return nil
    }
    guard !host.isEmpty else { return nil }
    address = .init(host: String(host), port: Int(port))
  }
}

/// The network that something typed ends with: 30s:5s,network=ship. A name may have commas, so it is the last part.
enum NetworkMark {
  /// The text before it, and the name; `nil`: there is none.
  static func split(_ text: String) -> (rest: String, network: String?) {
    guard let mark = text.firstRange(of: ",network=") else { return (text, nil) }
    return (String(text[..<mark.lowerBound]), String(text[mark.upperBound...]))
  }
}

/// TLS versions: 1.2, or 1.0..1.3.
struct TLSVersionRange: Quantity {
  static let notation = "a TLS version, e.g. 1.2, or a range, e.g. 1.0..1.2"

  var versions: ClosedRange<TLSVersion>

  init(_ versions: ClosedRange<TLSVersion>) { self.versions = versions }

  var defaultValueDescription: String {
    "\(versions.lowerBound)..\(versions.upperBound)".replacing("TLS ", with: "")
  }

  init?(argument: String) {
    guard let parts = bounds(argument), let low = TLSVersion("TLS \(parts.low)"),
      let high = TLSVersion("TLS \(parts.high)"), low <= high
    else { return nil }
    versions = low...high
  }
}

/// The two sides of "a..b"; one value is both.
private func bounds(_ text: String) -> (low: String, high: String)? {
  guard let dots = text.firstRange(of: "..") else { return (text, text) }
  return (String(text[..<dots.lowerBound]), String(text[dots.upperBound...]))
}
