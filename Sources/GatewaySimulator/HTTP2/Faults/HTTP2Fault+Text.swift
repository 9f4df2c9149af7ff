import Bytes
import HTTP2

/// A fault as text, which the command and the control endpoint take: `goaway,every=1000,last=notice`.
extension HTTP2Fault: CustomStringConvertible {
  /// Why a text is no fault.
  public struct Problem: Error, Sendable, Equatable, CustomStringConvertible {
    public let description: String

    init(_ description: String) { self.description = description }
  }

  /// The kinds and their keys, in the words of the help.
  package static let kinds: [(name: String, keys: String)] = [
    (
      "delay",
      "time=T or T..T (evenly), exponential=T (mean), lognormal=T (median) and sigma=0.5, or file=FILE (ms, one a line)"
    ),
    ("disorder", "depth=8, within=100ms"), ("silence", "of=stream|connection"),
    ("goaway", "last=seen|answered|notice, grace=1s, code=NO_ERROR, reason=Shutdown, end=drain|fin|rst"),
    ("refuse", ""), ("reset", "code=CANCEL"), ("streams", "limit=1"), ("throttle", "rate=1 (a second and token)"),
    ("close", "way=fin|rst, bytes=N"), ("slow", "rate=BYTES a second, else no window is opened"),
    ("frame", "wrong=" + WrongFrame.allCases.map(\.rawValue).joined(separator: " or ")),
    ("answer", "status=N, content=none|html|cut|empty"),
  ]
  /// The keys of every kind.
  package static let occasions =
    "every=N or T, probability=P, idle=T, topic=T, token=HEX, prefix=HEX, index=N..M, connection=N..M, from=T, until=T, times=N"

  /// Reads a fault: its kind, then keys with values.
  ///
  /// A file of delays is named, and not read yet.
  ///
  /// - Throws: a `Problem` for anything else.
  public init(_ text: String) throws(Problem) {
    var keys = try Keys(text)
    kind = try Kind(&keys)
    occasion = try Occasion(&keys)
    if let name = keys.unknown { throw Problem("\(keys.kind) has no '\(name)'") }
    switch occasion.share {
    case .idle where !kind.concernsConnection:
      throw Problem("idle is of silence,of=connection, goaway, streams and slow")
    default: break
    }
  }

  /// The file of delays that has to be read before the fault is used; `nil`: there is none.
  package var file: String? {
    if case .delay(.list(let list)) = kind { list.path } else { nil }
  }

  /// Reads the file that the fault names.
  package mutating func readFile() throws(DelayList.Problem) {
    if let file { kind = .delay(.list(try DelayList(path: file))) }
  }

  /// The shortest text that means the fault.
  public var description: String {
    ([kind.name] + kind.pairs + occasion.pairs).joined(separator: ",")
  }

  /// The keys of a text, which are taken one by one.
  fileprivate struct Keys {
    let kind: String
    private var values: [String: String] = [:]

    init(_ text: String) throws(Problem) {
      let parts = text.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
      kind = parts[0]
      for part in parts.dropFirst() {
        let pair = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        guard pair.count == 2, !pair[1].isEmpty else { throw Problem("'\(part)' is not KEY=VALUE") }
        guard values.updateValue(pair[1], forKey: pair[0]) == nil else { throw Problem("\(pair[0]) is given twice") }
      }
    }

    /// A key that nothing has taken.
    var unknown: String? { values.keys.min() }

    mutating func has(_ key: String) -> Bool { values[key] != nil }

    /// The value of a key; `nil` without the key.
    mutating func take<Value>(
      _ key: String, _ expected: String, _ convert: (String) -> Value?
    ) throws(Problem) -> Value? {
      guard let text = values.removeValue(forKey: key) else { return nil }
      guard let value = convert(text) else { throw Problem("\(key) has to be \(expected), not '\(text)'") }
      return value
    }

    mutating func text(_ key: String) throws(Problem) -> String? {
      try take(key, "at most 1000 letters") { $0.utf8.count <= 1_000 ? $0 : nil }
    }
    mutating func number(_ key: String, _ range: ClosedRange<Int>) throws(Problem) -> Int? {
      try take(key, "a number from \(range.lowerBound) to \(range.upperBound)") {
        Int($0).flatMap { range ~= $0 ? $0 : nil }
      }
    }
    mutating func numbers(_ key: String, from least: Int) throws(Problem) -> ClosedRange<Int>? {
      try take(key, "a number, or two with .. between, from \(least)") { text in
        let (low, high) = HTTP2Fault.bounds(text)
        guard let low = Int(low), let high = Int(high), least <= low, low <= high, high <= Int(Int32.max) else {
          return nil
        }
        return low...high
      }
    }
    mutating func share(_ key: String) throws(Problem) -> Double? {
      try take(key, "a share from 0 to 1") { Units.share($0).flatMap { 0...1 ~= $0 ? $0 : nil } }
    }
    mutating func time(_ key: String) throws(Problem) -> Duration? {
      try take(key, "a time such as 250ms or 2s, up to 1d", HTTP2Fault.time)
    }
    mutating func times(_ key: String) throws(Problem) -> ClosedRange<Duration>? {
      try take(key, "a time, or two with .. between, up to 1d") { text in
        let (low, high) = HTTP2Fault.bounds(text)
        guard let low = HTTP2Fault.time(low), let high = HTTP2Fault.time(high), low <= high else { return nil }
        return low...high
      }
    }
    mutating func bytes(_ key: String) throws(Problem) -> [UInt8]? {
      try take(key, "pairs of hexadecimal digits") { text in
        var bytes = Array(text.utf8)
        guard bytes.count <= 2_000 else { return nil }
        let digits = bytes.indices
        guard bytes.appendBytes(ofHexadecimal: digits) else { return nil }
        return Array(bytes[digits.upperBound...])
      }
    }
    mutating func choice<Value: RawRepresentable<String> & CaseIterable>(
      _ key: String, _ type: Value.Type
    ) throws(Problem) -> Value? {
      try take(key, type.allCases.map(\.rawValue).joined(separator: ", "), Value.init(rawValue:))
    }
    mutating func code() throws(Problem) -> ErrorCode? {
      try take("code", "an error code of RFC 9113, such as CANCEL, or its number") { text in
        if let number = UInt32(text) { return ErrorCode(rawValue: number) }
        return (0...UInt32(13)).lazy.map(ErrorCode.init(rawValue:)).first { $0.description == text.uppercased() }
      }
    }
  }

  fileprivate static func bounds(_ text: String) -> (low: String, high: String) {
    guard let dots = text.firstRange(of: "..") else { return (text, text) }
    return (String(text[..<dots.lowerBound]), String(text[dots.upperBound...]))
  }

  fileprivate static func time(_ text: String) -> Duration? {
    guard let nanoseconds = Units.nanoseconds(text), nanoseconds <= 86_400e9 else { return nil }
    return .nanoseconds(Int64(nanoseconds))
  }
}

extension HTTP2Fault.Kind {
  fileprivate init(_ keys: inout HTTP2Fault.Keys) throws(HTTP2Fault.Problem) {
    switch keys.kind {
    case "delay": self = .delay(try Self.delay(&keys))
    case "disorder":
      var disorder = HTTP2Fault.Disorder()
      if let depth = try keys.number("depth", 2...10_000) { disorder.depth = depth }
      if let within = try keys.time("within") { disorder.within = within }
      self = .disorder(disorder)
    case "silence":
      // An idle connection has no stream that could be silent.
      let isIdle = keys.has("idle")
      self = .silence(ofConnection: try keys.choice("of", SilenceScope.self).map { $0 == .connection } ?? isIdle)
    case "goaway":
      var goAway = HTTP2Fault.GoAway()
      if let last = try keys.choice("last", HTTP2Fault.GoAway.LastStream.self) { goAway.last = last }
      if let grace = try keys.time("grace") { goAway.grace = grace }
      if let code = try keys.code() { goAway.code = code }
      if let reason = try keys.text("reason") { goAway.reason = reason == "none" ? "" : reason }
      if let end = try keys.choice("end", HTTP2Fault.GoAway.End.self) { goAway.end = end }
      self = .goAway(goAway)
    case "refuse": self = .refuse
    case "reset":
      let code = try keys.code() ?? .cancel
      guard code != .refusedStream else { throw HTTP2Fault.Problem("REFUSED_STREAM is the fault 'refuse'") }
      self = .reset(code)
    case "streams": self = .streamLimit(try keys.number("limit", 0...1_000_000) ?? 1)
    case "throttle":
      let rate = try keys.take("rate", "a number a second, from 0.001 to 1000000") { text -> Double? in
        Double(text).flatMap { 0.001...1e6 ~= $0 ? $0 : nil }
      }
      self = .throttle(perSecond: rate ?? 1)
    case "close":
      var cut = HTTP2Fault.CutAnswer()
      cut.isReset = try keys.choice("way", CloseWay.self) == .rst
      cut.bytes = try keys.number("bytes", 0...1_000_000)
      self = .close(cut)
    case "slow":
      self = .slowReading(
        bytesPerSecond: try keys.take("rate", "bytes a second, such as 1000 or 4KiB") { text in
          let number = text.prefix { $0.isNumber }
          let unit = text.dropFirst(number.count)
          guard let value = Double(number), let size = unit.isEmpty ? 1 : Units.sizes.size(of: unit) else { return nil }
          return 1...1e9 ~= value * size ? Int(value * size) : nil
        })
    case "frame":
      guard let wrong = try keys.choice("wrong", WrongFrame.self) else {
        throw HTTP2Fault.Problem("frame needs wrong=")
      }
      self = .frame(wrong)
    case "answer":
      var answer = HTTP2Fault.AlteredAnswer()
      answer.status = try keys.number("status", 200...999)
      answer.content = try keys.choice("content", HTTP2Fault.AlteredAnswer.Content.self)
      guard answer.status != nil || answer.content != nil else {
        throw HTTP2Fault.Problem("answer needs status= or content=")
      }
      self = .answer(answer)
    default:
      throw HTTP2Fault.Problem(
        "no fault is '\(keys.kind)': \(HTTP2Fault.kinds.map(\.name).joined(separator: ", "))")
    }
  }

  private enum SilenceScope: String, CaseIterable { case stream, connection }
  private enum CloseWay: String, CaseIterable { case fin, rst }

  private static func delay(_ keys: inout HTTP2Fault.Keys) throws(HTTP2Fault.Problem) -> AnswerDelay {
    var found: [AnswerDelay] = []
    if let range = try keys.times("time") { found.append(.uniform(range)) }
    if let mean = try keys.time("exponential") { found.append(.exponential(mean: mean)) }
    let sigma = try keys.take("sigma", "a number from 0 to 10") { Double($0).flatMap { 0...10 ~= $0 ? $0 : nil } }
    if let median = try keys.time("lognormal") {
      found.append(.lognormal(median: median, sigma: sigma ?? 0.5))
    } else if sigma != nil {
      throw HTTP2Fault.Problem("sigma is of lognormal")
    }
    if let file = try keys.text("file") { found.append(.list(DelayList(named: file))) }
    guard found.count == 1 else { throw HTTP2Fault.Problem("delay takes one of time, exponential, lognormal and file") }
    return found[0]
  }

  fileprivate var pairs: [String] {
    switch self {
    case .delay(.uniform(let range)):
      let (low, high) = (range.lowerBound.faultText, range.upperBound.faultText)
      return ["time=" + (low == high ? low : "\(low)..\(high)")]
    case .delay(.exponential(let mean)): return ["exponential=\(mean.faultText)"]
    case .delay(.lognormal(let median, let sigma)): return ["lognormal=\(median.faultText)", "sigma=\(sigma)"]
    case .delay(.list(let list)): return ["file=\(list.path)"]
    case .disorder(let disorder): return ["depth=\(disorder.depth)", "within=\(disorder.within.faultText)"]
    case .silence(let ofConnection): return ofConnection ? ["of=connection"] : []
    case .goAway(let goAway):
      let normal = HTTP2Fault.GoAway()
      return [
        goAway.last == normal.last ? nil : "last=\(goAway.last.rawValue)",
        goAway.grace == normal.grace ? nil : "grace=\(goAway.grace.faultText)",
        goAway.code == normal.code
          ? nil : "code=\(goAway.code.rawValue > 13 ? "\(goAway.code.rawValue)" : "\(goAway.code)")",
        goAway.reason == normal.reason ? nil : "reason=\(goAway.reason.isEmpty ? "none" : goAway.reason)",
        goAway.end == normal.end ? nil : "end=\(goAway.end.rawValue)",
      ].compactMap { $0 }
    case .refuse: return []
    case .reset(let code): return ["code=\(code.rawValue > 13 ? "\(code.rawValue)" : "\(code)")"]
    case .streamLimit(let limit): return ["limit=\(limit)"]
    case .throttle(let rate): return ["rate=\(rate)"]
    case .close(let cut): return ["way=\(cut.isReset ? "rst" : "fin")"] + (cut.bytes.map { ["bytes=\($0)"] } ?? [])
    case .slowReading(let rate): return rate.map { ["rate=\($0)"] } ?? []
    case .frame(let wrong): return ["wrong=\(wrong.rawValue)"]
    case .answer(let answer):
      return (answer.status.map { ["status=\($0)"] } ?? []) + (answer.content.map { ["content=\($0.rawValue)"] } ?? [])
    }
  }
}

extension HTTP2Fault.Occasion {
  fileprivate init(_ keys: inout HTTP2Fault.Keys) throws(HTTP2Fault.Problem) {
    var shares: [Share] = []
    let every = try keys.take("every", "a number of notifications, or a time") { text -> Share? in
      if let count = Int(text) { return count > 0 ? .every(count) : nil }
      return HTTP2Fault.time(text).flatMap { $0 >= .milliseconds(1) ? .period($0) : nil }
    }
    if let every { shares.append(every) }
    if let probability = try keys.share("probability") { shares.append(.probability(probability)) }
    if let idle = try keys.time("idle") { shares.append(.idle(idle)) }
    guard shares.count <= 1 else { throw HTTP2Fault.Problem("every, probability and idle exclude each other") }
    share = shares.first ?? .all
    topic = try keys.text("topic")
    token = try keys.bytes("token")
    prefix = try keys.bytes("prefix") ?? []
    index = try keys.numbers("index", from: 0)
    connection = try keys.numbers("connection", from: 1)
    (from, until) = (try keys.time("from"), try keys.time("until"))
    if let from, let until, from >= until { throw HTTP2Fault.Problem("until has to be later than from") }
    times = try keys.number("times", 1...Int(Int32.max))
  }

  fileprivate var pairs: [String] {
    var pairs: [String] = []
    switch share {
    case .all: break
    case .every(let count): pairs.append("every=\(count)")
    case .probability(let probability): pairs.append("probability=\(probability)")
    case .period(let period): pairs.append("every=\(period.faultText)")
    case .idle(let time): pairs.append("idle=\(time.faultText)")
    }
    func hex(_ bytes: [UInt8]) -> String {
      var writer = ByteWriter(capacity: 2 * bytes.count)
      writer.write(hex: bytes.rawBytes)
      return String(decoding: Array(copying: writer.bytes), as: UTF8.self)
    }
    func range(_ range: ClosedRange<Int>) -> String {
      range.count == 1 ? "\(range.lowerBound)" : "\(range.lowerBound)..\(range.upperBound)"
    }
    if let topic { pairs.append("topic=\(topic)") }
    if let token { pairs.append("token=\(hex(token))") }
    if !prefix.isEmpty { pairs.append("prefix=\(hex(prefix))") }
    if let index { pairs.append("index=\(range(index))") }
    if let connection { pairs.append("connection=\(range(connection))") }
    if let from { pairs.append("from=\(from.faultText)") }
    if let until { pairs.append("until=\(until.faultText)") }
    if let times { pairs.append("times=\(times)") }
    return pairs
  }
}

extension Duration {
  /// Exact to the nanosecond, so that reading it gives the same value.
  fileprivate var faultText: String { Units.times.text(Int(nanoseconds), in: ["s", "ms", "us", "ns"]) }
}
