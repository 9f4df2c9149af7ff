import ArgumentParser
import BinaryProtocol
import Bytes
import CommandFiles
import Payload
import PushModel
import Records

/// How payloads are read from a file.
struct PayloadInputOptions: ParsableArguments {
  enum Form: String, CaseIterable, ExpressibleByArgument {
    case auto, payload, lines
  }

  @Option(
    help:
      "Contents of the file: payload (a single one, on any number of lines), lines (a payload or a record of 'apnscope decode' on each line), or auto (detected)."
  )
  var input = Form.auto

  @Option("Longest file to read.", valueName: "bytes")
  var maxInputLength = ByteCount(256 << 20)

  func validate() throws {
    guard 1...1 << 30 ~= maxInputLength.bytes else {
      throw ValidationError("--max-input-length must be 1 to 1073741824 bytes (got \(maxInputLength.bytes)).")
    }
  }
}

/// The payloads of a file: a single one, or one per line. A line may also be a notification's record; other records are
/// skipped.
struct PayloadInput {
  /// A payload, with the facts from its record.
  struct Item {
    var payload: [UInt8]
    /// The payload's line, from 1; `nil` if it is the whole file.
    var line: Int?
    var frame: PushFrame?
    /// The kind of the record's own topic, and the longest payload, of one over HTTP/2.
    var topic: PayloadTopic?
    var longestPayload: Int?
    /// The payload was extracted from a record, so that positions in it are not positions in the file.
    var isRecorded = false
  }

  /// The file's name in messages.
  let name: String
  private let bytes: [UInt8]
  private let isOne: Bool

  init(_ path: String, _ options: PayloadInputOptions) throws(FileFailure) {
    name = path == "-" ? "standard input" : path
    do {
      bytes = try WholeFile.read(path == "-" ? StandardInput.path : path, maximumLength: options.maxInputLength.bytes)
    } catch {
      switch error {
      case .cannotOpen: throw FileFailure(.cannotOpen, name, "\(error)")
      case .readFailed: throw FileFailure(.readFailed, name, "\(error)")
      case .longerThan: throw FileFailure(.unusable, name, "\(error) (--max-input-length)")
      }
    }
    switch options.input {
    case .payload: isOne = true
    case .lines: isOne = false
    case .auto: isOne = !Self.looksLikeLines(bytes)
    }
  }

  /// Whether the file has one payload per line: two lines or more, of which each begins an object or the first is a
  /// complete object; or a single record.
  private static func looksLikeLines(_ bytes: [UInt8]) -> Bool {
    let lines = bytes.split(separator: UInt8(ascii: "\n"), maxSplits: 1_000).filter { !isBlank($0) }
    guard let first = lines.first, first.first == UInt8(ascii: "{") else { return false }
    let isObject = JSONText.scan(Array(first).rawBytes) != .invalid
    if lines.count > 1, JSONText.scan(bytes.rawBytes) != .invalid { return false }
    if lines.count == 1 { return isObject && first.starts(with: Array("{\"type\":\"".utf8)) }
    return isObject || lines.allSatisfy { $0.first == UInt8(ascii: "{") && $0.count > 1 }
  }

  private static func isBlank(_ line: ArraySlice<UInt8>) -> Bool { line.allSatisfy { RecordMembers.isSpace($0) } }

  /// Calls `body` with each payload, until it returns `false`. Throws at a record that cannot be used.
  ///
  /// - Parameter topic: of records over HTTP/2 without a topic.
  func eachItem(topic: PayloadTopic = .unknown, _ body: (Item) throws -> Bool) throws {
    if isOne {
      // Editors end a file with a line break, which is not part of the payload as sent.
      var payload = bytes[...]
      if payload.count > 1, payload.last == UInt8(ascii: "\n") {
        payload.removeLast()
        if payload.last == UInt8(ascii: "\r") { payload.removeLast() }
      }
      _ = try body(Item(payload: Array(payload)))
      return
    }
    var (start, number) = (0, 0)
    while start < bytes.count {
      let end = bytes[start...].firstIndex(of: UInt8(ascii: "\n")) ?? bytes.count
      var line = bytes[start..<end]
      if line.last == 0x0d { line.removeLast() }
      start = end + 1
      number += 1
      guard !Self.isBlank(line) else { continue }
      let item: Item?
      do {
        item = try Self.item(Array(line), number, topic)
      } catch let error as RecordError {
        throw FileFailure(.unusable, "\(name):\(number)", "\(error)")
      }
      if let item, try !body(item) { return }
    }
  }

  /// `nil`: a record of another type, or of a notification over HTTP/2 that cannot be judged since parts are missing.
  private static func item(_ line: [UInt8], _ number: Int, _ topic: PayloadTopic) throws -> Item? {
    guard line.starts(with: Array("{\"type\":\"".utf8)), JSONText.scan(line.rawBytes) != .invalid,
      let type = type(line.rawBytes)
    else { return Item(payload: line, line: number) }
    guard type == "notification" else {
      return RecordType(rawValue: type) != nil ? nil : Item(payload: line, line: number)
    }
    if isOfProviderAPI(line.rawBytes) {
      guard let recorded = try RecordedPayload(line.rawBytes, topic: topic) else { return nil }
      var frame = recorded.environment.frame
      frame?.sentAt = recorded.sentAt
      return Item(
        payload: recorded.payload, line: number, frame: frame, topic: recorded.environment.topic,
        longestPayload: recorded.environment.longestPayload, isRecorded: true)
    }
    guard var members = try RecordMembers(line.rawBytes) else { return nil }
    var record = RecordedNotification()
    record.padsInside = true
    while let member = members.next() { try record.read(member, of: members) }
    var output = ByteWriter(capacity: line.count)
    var scratch = ByteWriter(capacity: 256)
    _ = try record.encode(line.rawBytes, into: &output, scratch: &scratch)
    let fields: PushFields
    do {
      fields = try PushFields(parsing: output.bytes)
    } catch {
      throw RecordError("its fields make no notification: \(error)")
    }
    let frame = PushFrame(
      command: fields.command.rawValue, priority: fields.priority, expiration: fields.expiration,
      sentAt: record.time.map { $0 / 1_000_000_000 }, token: Array(copying: output.bytes.extracting(fields.token.range))
    )
    return Item(
      payload: Array(copying: output.bytes.extracting(fields.payload.range)), line: number, frame: frame,
      isRecorded: true)
  }

  /// Whether the record of a notification has a stream.
  private static func isOfProviderAPI(_ line: RawSpan) -> Bool {
    guard var members = try? RecordMembers(line) else { return false }
    while let member = members.next(), !members.isName("command", of: member) {
      if members.isName("stream", of: member) { return true }
    }
    return false
  }

  private static func type(_ line: RawSpan) -> String? {
    guard var members = try? RecordMembers(line), let first = members.next(), members.isName("type", of: first) else {
      return nil
    }
    return RecordText.unescaped(line.extracting(first.value))
  }
}
