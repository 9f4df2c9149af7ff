import ArgumentParser
import Bytes
import GatewaySimulator
import LoadTest
import Measurement

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

/// A share of a stream, as typed: 2/4; or auto, which takes it from the engine that has started this process.
enum SegmentArgument: Quantity {
  case part(number: Int, count: Int)
  /// With the number of segments, for engines that do not tell it.
  case auto(count: Int?)

  static let notation =
    "a part, e.g. 2/4 for the second of four, of up to \(most); or auto, or auto/4, under Slurm, MPI or Kubernetes"
  /// The maximum of a result.
  static let most = 1_000_000

  init?(argument: String) {
    let words = argument.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
    if words.first == "auto" {
      guard words.count > 1 else {
        self = .auto(count: nil)
        return
      }
      guard words.count == 2, let count = Int(words[1]), (1...Self.most).contains(count) else { return nil }
      self = .auto(count: count)
      return
    }
    let parts = words.compactMap { Int($0) }
    guard words.count == 2, parts.count == 2, (1...Self.most).contains(parts[1]), (1...parts[1]).contains(parts[0])
    else { return nil }
    self = .part(number: parts[0], count: parts[1])
  }

  /// Whether it is known, without an engine, to be less than the whole stream.
  var isPart: Bool { if case .part(_, let count) = self { count > 1 } else { false } }

  /// The text of auto; `nil` for a part.
  var auto: String? {
    switch self {
    case .part: nil
    case .auto(let count): count.map { "auto/\($0)" } ?? "auto"
    }
  }
}

/// A time of day as typed: 2026-11-22T09:00:00Z, +30s from now, or next:30s, the next multiple of 30 s of the clock.
enum StartArgument: Quantity {
  static let notation =
    "a time with its zone, e.g. 2026-11-22T09:00:00Z or 2026-11-22T10:00:00+01:00; +30s for a time from now; or next:30s for the next multiple of 30 s of the clock"

  case at(Int64, text: String)
  case after(TimeSpan)
  /// A multiple of this since 1970, in UTC.
  case next(TimeSpan)

  init?(argument: String) {
    if argument.hasPrefix("+") {
      guard let time = TimeSpan(argument: String(argument.dropFirst())) else { return nil }
      self = .after(time)
    } else if argument.hasPrefix("next:") {
      guard let time = TimeSpan(argument: String(argument.dropFirst("next:".count))), time.duration >= .seconds(1)
      else { return nil }
      self = .next(time)
    } else {
      guard let time = Self.nanoseconds(argument) else { return nil }
      self = .at(time, text: argument)
    }
  }

  /// UNIX nanoseconds of an RFC 3339 time with Z or an offset.
  private static func nanoseconds(_ text: String) -> Int64? {
    let bytes = Array(text.utf8)
    if let time = RFC3339.nanoseconds(bytes.rawBytes) { return time }
    // 2026-11-22T10:00:00+01:00: the time of day at the offset, which is ahead of UTC if it is positive.
    guard bytes.count > 6,
      let sign = ["+": 1, "-": -1][String(decoding: bytes[(bytes.count - 6)...].prefix(1), as: UTF8.self)]
    else { return nil }
    let offset = String(decoding: bytes.suffix(5), as: UTF8.self).split(separator: ":").map(String.init)
    guard offset.count == 2,
      offset.allSatisfy({ $0.utf8.count == 2 && $0.utf8.allSatisfy { (0x30...0x39).contains($0) } }),
      let hours = Int64(offset[0]), let minutes = Int64(offset[1]), hours < 24, minutes < 60
    else { return nil }
    let inZone = bytes.dropLast(6) + [UInt8(ascii: "Z")]
    guard let local = RFC3339.nanoseconds(Array(inZone).rawBytes) else { return nil }
    let time = local - Int64(sign) * (hours * 60 + minutes) * 60_000_000_000
    return time >= 0 ? time : nil
  }

  /// UNIX nanoseconds.
  func time(from now: Int64) -> Int64 {
    switch self {
    case .at(let time, _): time
    case .after(let time): now + time.duration.nanoseconds
    case .next(let period): (now / period.duration.nanoseconds + 1) * period.duration.nanoseconds
    }
  }

  var defaultValueDescription: String {
    switch self {
    case .at(_, let text): text
    case .after(let time): "+\(time.defaultValueDescription)"
    case .next(let period): "next:\(period.defaultValueDescription)"
    }
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
