import CTOML

/// A value of a TOML document.
indirect enum TOMLValue {
  case table([String: TOMLValue])
  case array([TOMLValue])
  case text(String)
  case integer(Int64)
  case real(Double)
  case boolean(Bool)
  /// A date or a time.
  case other

  /// Why a text is not TOML.
  struct ParseError: Error {
    let line: Int
    let column: Int
    let description: String
  }

  /// The most parts of a key. The parser makes a table of each, and limits only those in brackets.
  private static let mostParts = 32

  /// Where a key has too many parts; or a text, which means another option than any here.
  private static func deepKey(in text: String) -> (line: Int, column: Int)? {
    var (line, column, dots) = (1, 0, 0)
    for byte in text.utf8 {
      column += 1
      switch byte {
      case UInt8(ascii: "."): dots += 1
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), 0x80...,
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "-"), UInt8(ascii: "\""),
        UInt8(ascii: "'"), UInt8(ascii: " "), UInt8(ascii: "\t"), UInt8(ascii: "\\"):
        break
      default:
        dots = 0
        if byte == UInt8(ascii: "\n") { (line, column) = (line + 1, 0) }
      }
      if dots >= mostParts { return (line, column) }
    }
    return nil
  }

  /// Parses a document, which is a table.
  init(parsing text: String) throws(ParseError) {
    if let place = Self.deepKey(in: text) {
      throw ParseError(
        line: place.line, column: place.column, description: "a key has more than \(Self.mostParts) parts")
    }
    let builder = Builder()
    var error = apnscope_toml_error()
    let status = unsafe text.withCString { start in
      // Safe: the builder outlives the call, and items are read while they live.
      unsafe apnscope_toml_read(
        start, text.utf8.count, Unmanaged.passUnretained(builder).toOpaque(),
        { context, item in
          guard let context = unsafe context, let item = unsafe item else { return }
          unsafe Unmanaged<Builder>.fromOpaque(context).takeUnretainedValue().take(item.pointee)
        }, &error)
    }
    guard status == 0, let document = builder.document else {
      let description = unsafe withUnsafeBytes(of: error.description) { bytes in
        unsafe String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
      }
      throw ParseError(line: Int(error.line), column: Int(error.column), description: description)
    }
    self = document
  }

  var table: [String: TOMLValue]? { if case .table(let table) = self { table } else { nil } }
  var array: [TOMLValue]? { if case .array(let values) = self { values } else { nil } }
  var string: String? { if case .text(let text) = self { text } else { nil } }
  var int: Int64? { if case .integer(let number) = self { number } else { nil } }
  var double: Double? { if case .real(let number) = self { number } else { nil } }
  var bool: Bool? { if case .boolean(let isTrue) = self { isTrue } else { nil } }
}

/// Makes a document of its items.
private final class Builder {
  /// What has begun and not ended: its key in what is around it, and its values so far.
  private enum Open {
    case table(key: String, [String: TOMLValue])
    case array(key: String, [TOMLValue])
  }

  private var open: [Open] = []
  private(set) var document: TOMLValue?

  func take(_ item: apnscope_toml_item) {
    let key = unsafe Self.text(item.key, item.key_length)
    switch unsafe item.event {
    case APNSCOPE_TOML_TABLE: open.append(.table(key: key, [:]))
    case APNSCOPE_TOML_ARRAY: open.append(.array(key: key, []))
    case APNSCOPE_TOML_END:
      switch open.popLast() {
      case .table(let key, let values): add(.table(values), key)
      case .array(let key, let values): add(.array(values), key)
      case nil: break
      }
    case APNSCOPE_TOML_TEXT: add(.text(unsafe Self.text(item.text, item.text_length)), key)
    case APNSCOPE_TOML_INTEGER: add(.integer(unsafe item.integer), key)
    case APNSCOPE_TOML_REAL: add(.real(unsafe item.real), key)
    case APNSCOPE_TOML_BOOLEAN: add(.boolean(unsafe item.integer != 0), key)
    default: add(.other, key)
    }
  }

  private func add(_ value: TOMLValue, _ key: String) {
    switch open.popLast() {
    case .table(let name, var values):
      values[key] = value
      open.append(.table(key: name, values))
    case .array(let name, var values):
      values.append(value)
      open.append(.array(key: name, values))
    case nil: document = value
    }
  }

  private static func text(_ start: UnsafePointer<CChar>?, _ length: Int) -> String {
    guard let start = unsafe start else { return "" }
    // Safe: the parser says how many bytes there are.
    return unsafe String(decoding: UnsafeRawBufferPointer(start: start, count: length), as: UTF8.self)
  }
}
