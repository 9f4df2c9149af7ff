import ArgumentParser
import Bytes
import GatewaySimulator
import LoadTest

/// A count as typed: 500, 200k, 10M, 1G.
struct Count: Quantity {
  static let notation = "a count, e.g. 1000, 20k or 10M"

  var value: Int

  init(_ value: Int) { self.value = value }

  init?(argument: String) {
    guard let number = scaled(argument), number >= 0, number <= 1e15, number.rounded() == number else { return nil }
    value = Int(number)
  }

  var defaultValueDescription: String {
    value > 0 ? Units.counts.text(value, in: ["G", "M", "k"]) : "\(value)"
  }
}

/// A rate as typed: 200k/s, 1.5M/s, 600/m; a number alone, as 50k, is per second.
struct Rate: Quantity {
  static let notation = "a rate, e.g. 500/s, 200k/s or 600/m, up to 1G/s; a number alone, e.g. 50k, is per second"

  var perSecond: Double

  init?(argument: String) {
    let parts = argument.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
    guard let number = parts.first.flatMap({ scaled(String($0)) }), number >= 0, number <= 1e9 else { return nil }
    // The unit of time is a second or longer.
    guard let length = Units.times.size(of: parts.count == 2 ? parts[1] : "s"), length >= 1e9 else { return nil }
    perSecond = number / (length / 1e9)
  }
}

/// A stage as typed: `10s:0..50k/s` (a ramp) or `1m:50k/s`; rates as `Rate`.
struct StageArgument: Quantity {
  static let notation = "a stage, e.g. 1m:50k/s, or 10s:0..50k/s for a ramp; its time needs a unit"

  var stage: Schedule.Stage

  init?(argument: String) {
    let parts = argument.split(separator: ":", maxSplits: 1).map(String.init)
    guard parts.count == 2, let length = TimeSpan(argument: parts[0]) else { return nil }
    let slash = parts[1].lastIndex(of: "/") ?? parts[1].endIndex
    let unit = parts[1][slash...]
    // A rate may have a decimal point itself, so both dots are looked for.
    let rateText = String(parts[1][..<slash])
    let texts =
      rateText.firstRange(of: "..").map {
        [String(rateText[..<$0.lowerBound]), String(rateText[$0.upperBound...])]
      } ?? [rateText]
    let rates = texts.compactMap { Rate(argument: $0 + unit)?.perSecond }
    guard rates.count == texts.count, let first = rates.first, let last = rates.last else { return nil }
    stage = Schedule.Stage(length: length.duration / .seconds(1), from: first, to: last)
  }
}

extension StageArgument {
  /// The stage as it may be typed.
  var text: String {
    "\(TimeSpan(.seconds(stage.length)).defaultValueDescription):\(stage.from)..\(stage.to)/s"
  }
}

/// `on` or `off`.
enum Switch: String, CaseIterable, ExpressibleByArgument { case on, off }

/// A gateway as typed: localhost, localhost:2195, 127.0.0.1, ::1 or [::1]:2195; without a port, on the usual one, 2195.
struct GatewayArgument: Quantity {
  static let notation = "HOST or HOST:PORT, e.g. localhost, 127.0.0.1:2195 or [::1]:2195, with a port from 1 to 65535"
  private static let usualPort = 2195

  var address: SimulatorOptions.Address

  init(_ address: SimulatorOptions.Address) { self.address = address }

  var defaultValueDescription: String { "\(address)" }

  init?(argument: String) { self.init(argument: argument, usualPort: Self.usualPort) }

  /// - Parameter usualPort: the port if none is typed.
  init?(argument: String, usualPort: Int) {
    if let both = ListeningAddress(argument: argument)?.address {
      guard both.port > 0 else { return nil }
      address = both
      return
    }
    var host = argument[...]
    if host.hasPrefix("["), host.hasSuffix("]") { host = host.dropFirst().dropLast() }
    // One colon precedes a port, and this text has no valid one; an IPv6 address has several. A number alone is a
    // port without a host.
    guard !host.allSatisfy(\.isNumber), host.filter({ $0 == ":" }).count != 1,
      !host.contains(where: { "/[]".contains($0) })
    else {
      return nil
    }
    address = .init(host: String(host), port: usualPort)
  }

  static func guess(_ text: String) -> String? {
    if let port = UInt16(text), port > 0 { return "localhost:\(port)" }
    guard let scheme = text.firstRange(of: "://") else { return nil }
    let host = String(text[scheme.upperBound...].prefix { $0 != "/" })
    return GatewayArgument(argument: host).map { _ in host }
  }
}

/// Values and how often each is taken, as typed: `2`, `0=1,2=9` or `0=10%,2=90%`.
struct MixArgument: Quantity {
  static let notation = "a value, or values with weights, e.g. 0=1,2=9"

  /// Values with their weights; a weight is `nil` if none was typed.
  var parts: [(value: String, weight: Double?)]

  init?(argument: String) {
    parts = []
    for part in argument.split(separator: ",", omittingEmptySubsequences: false) {
      let pair = part.split(separator: "=", maxSplits: 1).map(String.init)
      guard let value = pair.first, !value.isEmpty else { return nil }
      guard pair.count == 2 else {
        // A value has an equals sign only before its weight.
        guard !part.contains("=") else { return nil }
        parts.append((value, nil))
        continue
      }
      guard let weight = Double(pair[1]) ?? Share(argument: pair[1])?.value, weight >= 0, weight.isFinite else {
        return nil
      }
      parts.append((value, weight))
    }
    guard !parts.isEmpty else { return nil }
  }

  /// The mix of the values' meanings; `nil` if a value has none.
  func mix<Value>(_ read: (String) -> Value?) -> WorkloadPlan.Mix<Value>? {
    var values: [(Value, Double)] = []
    for part in parts {
      guard let value = read(part.value) else { return nil }
      values.append((value, part.weight ?? 1))
    }
    return WorkloadPlan.Mix(values)
  }
}

/// Shares of notifications with faults, as typed: `missing-token=1e-4,payload=badge_type:1%`.
struct FaultsArgument: Quantity {
  static let notation = "shares, e.g. missing-token=1e-4,oversize=1%,payload=json_trailing_comma:1%"

  /// All faults except those of payloads; a share is `nil` if none was typed.
  var faults: [(value: String, weight: Double?)] = []
  var payloads: [(code: String, share: Double)] = []

  init?(argument: String) {
    for part in argument.split(separator: ",", omittingEmptySubsequences: false).map(String.init) {
      guard part.hasPrefix("payload=") else {
        guard let mix = MixArgument(argument: part) else { return nil }
        faults += mix.parts
        continue
      }
      let pair = part.dropFirst("payload=".count).split(separator: ":", maxSplits: 1).map(String.init)
      guard pair.count == 2, let share = Double(pair[1]) ?? Share(argument: pair[1])?.value, share >= 0, share.isFinite
      else { return nil }
      payloads.append((pair[0], share))
    }
  }
}

/// A share of a stream, as typed: 2/4.
struct SegmentArgument: Quantity {
  static let notation = "a part, e.g. 2/4 for the second of four, of up to \(most)"
  /// The maximum of a result.
  private static let most = 1_000_000

  var number: Int
  var count: Int

  init?(argument: String) {
    let parts = argument.split(separator: "/").compactMap { Int($0) }
    guard parts.count == 2, (1...Self.most).contains(parts[1]), (1...parts[1]).contains(parts[0]) else { return nil }
    (number, count) = (parts[0], parts[1])
  }
}

/// A batch's limit as typed: bytes with a unit (16KiB), or a number of notifications without.
struct BatchArgument: Quantity {
  static let notation = "bytes with a unit, up to 1MiB, e.g. 4KiB; or a number of notifications without one"

  var bytes: Int?
  var notifications: Int?

  init?(argument: String) {
    if let number = Int(argument) {
      guard number >= 1 else { return nil }
      notifications = number
    } else {
      guard let count = ByteCount(argument: argument), (1...1 << 20).contains(count.bytes) else { return nil }
      bytes = count.bytes
    }
  }
}

/// A number with an optional suffix k, M or G.
private func scaled(_ text: String) -> Double? {
  let parts = Units.counts.split(text) ?? (text, 1)
  guard let number = Double(parts.number), number.isFinite else { return nil }
  return number * parts.size
}
