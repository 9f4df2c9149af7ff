import Bytes

/// Finds an `aps` that is not at the top level, but in an envelope of another service.
extension Judging {
  /// The most objects and arrays that are searched.
  private static var most: Int { 10_000 }

  /// The path of the object that has an `aps` dictionary: `message.apns.payload`, or `the text of APNS` where it is
  /// encoded in a string; `nil` where there is none.
  func placeOfAPS(_ tape: JSONTape, _ text: RawSpan) -> String? {
    var waiting: [(value: Int, path: String)] = [(0, "")]
    var seen = 0
    while seen < waiting.count, seen < Self.most {
      let (value, path) = waiting[seen]
      seen += 1
      var found: String?
      func look(at inner: Int, _ name: String) {
        switch tape.kind(inner) {
        case .object, .array: waiting.append((inner, name))
        case .string where found == nil && tape.holdsObject(inner, text):
          if tape.string(inner, text).contains("\"aps\"") { found = "the text of \(name)" }
        default: break
        }
      }
      if tape.kind(value) == .object {
        tape.forEachKey(ofObject: value) { key in
          if value != 0, tape.isKey(key, "aps", text), tape.kind(key + 1) == .object {
            found = path
          } else {
            // A longer name says nothing.
            let name = tape.contents(key).count <= 64 ? tape.string(key, text) : "…"
            look(at: key + 1, path.isEmpty ? name : "\(path).\(name)")
          }
        }
      } else {
        var number = 0
        tape.forEachElement(ofArray: value) { element in
          look(at: element, "\(path)[\(number)]")
          number += 1
        }
      }
      if let found { return found }
    }
    return nil
  }
}
