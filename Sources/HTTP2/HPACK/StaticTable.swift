import Bytes

/// The static table of RFC 7541 appendix A.
enum StaticTable {
  static let fields: [(name: String, value: String)] = [
    (":authority", ""), (":method", "GET"), (":method", "POST"), (":path", "/"), (":path", "/index.html"),
    (":scheme", "http"), (":scheme", "https"), (":status", "200"), (":status", "204"), (":status", "206"),
    (":status", "304"), (":status", "400"), (":status", "404"), (":status", "500"), ("accept-charset", ""),
    ("accept-encoding", "gzip, deflate"), ("accept-language", ""), ("accept-ranges", ""), ("accept", ""),
    ("access-control-allow-origin", ""), ("age", ""), ("allow", ""), ("authorization", ""), ("cache-control", ""),
    ("content-disposition", ""), ("content-encoding", ""), ("content-language", ""), ("content-length", ""),
    ("content-location", ""), ("content-range", ""), ("content-type", ""), ("cookie", ""), ("date", ""),
    (
      "etag",
      ""
    ), ("expect", ""), ("expires", ""), ("from", ""), ("host", ""), ("if-match", ""), ("if-modified-since", ""),
    ("if-none-match", ""), ("if-range", ""), ("if-unmodified-since", ""), ("last-modified", ""), ("link", ""),
    ("location", ""), ("max-forwards", ""), ("proxy-authenticate", ""), ("proxy-authorization", ""), ("range", ""),
    ("referer", ""), ("refresh", ""), ("retry-after", ""), ("server", ""), ("set-cookie", ""),
    ("strict-transport-security", ""), ("transfer-encoding", ""), ("user-agent", ""), ("vary", ""), ("via", ""),
    ("www-authenticate", ""),
  ]

  /// The number of entries; their indices begin with 1.
  static let count = 61

  /// The places of one entry in `bytes`.
  struct Entry: Sendable {
    var name: Range<Int>
    var value: Range<Int>
  }

  /// Names and values, one after the other: a field list begins with them, so that its fields can refer to them.
  static let bytes = fields.flatMap { Array($0.name.utf8) + Array($0.value.utf8) }

  /// The places of all entries, from index 1 on.
  static let entries: [Entry] = {
    var offset = 0
    return fields.map { field in
      let name = offset..<offset + field.name.utf8.count
      let value = name.upperBound..<name.upperBound + field.value.utf8.count
      offset = value.upperBound
      return Entry(name: name, value: value)
    }
  }()

  /// The first index of each name.
  private static let indices: [[UInt8]: Int] = {
    var indices: [[UInt8]: Int] = [:]
    for (place, field) in fields.enumerated().reversed() { indices[Array(field.name.utf8)] = place + 1 }
    return indices
  }()

  /// The index of an entry with the name, and whether it has the value as well; `nil` if there is none.
  static func find(_ name: RawSpan, _ value: RawSpan) -> (index: Int, hasValue: Bool)? {
    guard let first = indices[Array(copying: name)] else { return nil }
    let bytes = bytes.rawBytes
    var index = first
    while index <= count, bytes.extracting(entries[index - 1].name).elementsEqual(name) {
      if bytes.extracting(entries[index - 1].value).elementsEqual(value) { return (index, true) }
      index += 1
    }
    return (first, false)
  }
}
