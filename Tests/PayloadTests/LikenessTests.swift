import Bytes
import Testing

@testable import Payload

@Suite("Keys and formats")
struct LikenessTests {
  @Test(
    "An unknown key resembles the nearest known one",
    arguments: [
      ("bagde", "badge"), ("Alert", "alert"), ("ALERT", "alert"), ("contentAvailable", "content-available"),
      ("content available", "content-available"), ("mutable_contents", "mutable-content"), ("threadid", "thread-id"),
      ("catagory", "category"), ("categories", nil), ("bodi", "body"), ("bdoy", "body"), ("boody", "body"),
      ("sounds", "sound"), ("soundzz", nil), ("text", nil), ("locKey", "loc-key"), ("loc_arg", "loc-args"),
      ("actions", "action"), ("titel", "title"), ("subtitel", "subtitle"), ("", nil), ("éalert", "alert"),
    ] as [(String, String?)])
  func likeness(name: String, known: String?) {
    #expect(KeyLikeness.best(for: name, in: .aps)?.name.description == known)
  }

  @Test("Of keys that are equally near, one of the same dictionary comes first")
  func sameDictionary() {
    // One edit from both would be needed; "loc-key" and "loc-args" are not near each other.
    #expect(KeyLikeness.best(for: "loc-arg", in: .alert) == .locArgs)
    #expect(KeyLikeness.isLikeAPS("APS") && KeyLikeness.isLikeAPS("apns") && KeyLikeness.isLikeAPS("a-p-s"))
    #expect(KeyLikeness.isLikeAPS("pas") && !KeyLikeness.isLikeAPS("apple") && !KeyLikeness.isLikeAPS("maps2"))
  }

  @Test("Every unknown key is compared with the known ones, however many come before")
  func manyUnknownKeys() {
    let members = (0..<100).map { "\"unknown\($0)\":1" } + ["\"bagde\":1", "\"alert\":\"x\""]
    #expect(judged("{\"aps\":{\(members.joined(separator: ","))}}").rules.codes == ["key_misspelt", "key_unknown"])
  }

  @Test("Every known key is found by its name and by no other")
  func names() {
    for key in PayloadKey.allCases {
      let name = Array(key.name.description.utf8)
      #expect(PayloadKey.named(name.rawBytes, 0..<name.count) == key)
      for place in name.indices {
        var other = name
        other[place] ^= 1
        #expect(PayloadKey.named(other.rawBytes, 0..<other.count) == nil)
      }
    }
  }

  @Test(
    "Formats are filled from left to right",
    arguments: [
      ("%@ and %@", ["a", "b"], "a and b", 2), ("%2$@, %1$@", ["a", "b"], "b, a", 2), ("%@", [], "%@", 1),
      ("%1$@ %@ %2$@ %@", ["a", "b"], "a a b b", 2), ("100%% %", [], "100% %", 0), ("%%@", ["a"], "%@", 0),
      ("%0$@ %d %1$d", ["a"], "%0$@ %d %1$d", 0), ("%@", ["%@"], "%@", 1), ("%12$@", ["a"], "%12$@", 12),
      ("", ["a"], "", 0), ("%1$", ["a"], "%1$", 0),
      ("%99999999999999999999$@", [], "%99999999999999999999$@", 1_000_000),
      ("%02$@", ["a"], "%02$@", 2),
    ] as [(String, [String], String, Int)])
  func formats(format: String, arguments: [String], text: String, needed: Int) {
    let localized = LocalizedFormat(format)
    #expect(localized.filled(with: arguments).text == text)
    #expect(localized.argumentsNeeded == needed)
  }
}
