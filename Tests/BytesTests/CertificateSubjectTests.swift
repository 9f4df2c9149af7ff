import Bytes
import TestSupport
import Testing

@Suite("Topics of certificates")
struct CertificateSubjectTests {
  @Test(
    "Topics are UIDs, or what Apple writes at the end of the CN",
    arguments: [
      ("UID=com.example.app,CN=Apple Push Services: com.example.app", ["com.example.app"]),
      ("CN=Apple Push Services: com.example.app,UID=com.example.app", ["com.example.app"]),
      ("UID=a+CN=b", ["a"]), ("CN=b+UID=a", ["a"]), ("CN = b + UID", []), ("UID=a,UID=b", ["a", "b"]),
      ("C=US, UID=a", ["a"]),
      ("CN=VoIP Services: com.example.app.voip,OU=X", ["com.example.app.voip"]),
      ("CN=Apple Push Services: ", []), ("CN=Server: main", []), ("CN=Note: see com.example app", []),
      ("CN=com.example.app", []), ("UID=,CN=Pass Type ID: pass.com.example", ["pass.com.example"]),
      ("O=A\\, UID=x,UID=b", ["b"]), ("O=A\\+UID=x", []), ("UID=a\\,b", ["a,b"]), ("UID=\\C3\\A4\\20", ["ä "]),
      ("UID=a\\", ["a"]), ("UID=a\\4", ["a"]), ("", []), ("UID", []), ("=x", []), ("UID=a=b", ["a=b"]),
    ])
  func topics(subject: String, topics: [String]) {
    #expect(CertificateSubject(subject).topics == topics)
  }

  @Test("A certificate is called by its topics, otherwise by its CN")
  func name() {
    #expect(CertificateSubject("UID=a+CN=b").name == "a")
    #expect(CertificateSubject("UID=a,UID=b").name == "a, b")
    #expect(CertificateSubject("O=x,CN=push").name == "push")
    #expect(CertificateSubject("O=x").name == nil)
  }

  @Test("A value escaped as RFC 4514 says comes back", arguments: seeds(20, of: 500))
  func escaping(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    let value = String(
      (0..<random.number(1...20)).map { _ in random.pick(Array(",+\"\\<>;=# äb.📱0f")) })
    let escaped = value.map { ",+\"\\<>;=#".contains($0) ? "\\\($0)" : String($0) }.joined()
    let hexadecimal = value.utf8.map { "\\" + String(UInt16($0) + 0x100, radix: 16).suffix(2) }.joined()
    for text in [escaped, hexadecimal] {
      #expect(CertificateSubject("O=x,UID=\(text)+CN=y").topics == [value])
    }
  }
}
