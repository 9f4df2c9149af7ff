import TLSFoundation
import Testing

@Suite("Versions of TLS")
struct TLSVersionTests {
  @Test(
    "Versions have the names that people use, and are known by them",
    arguments: [
      (0x0002, "SSL 2.0"), (0x0300, "SSL 3.0"), (0x0301, "TLS 1.0"), (0x0302, "TLS 1.1"), (0x0303, "TLS 1.2"),
      (0x0304, "TLS 1.3"),
    ] as [(UInt16, String)])
  func names(number: UInt16, name: String) {
    #expect(TLSVersion(rawValue: number).description == name)
    #expect(TLSVersion(name)?.rawValue == number)
  }

  @Test("Other numbers are versions too, without a name")
  func unknown() {
    #expect(TLSVersion(rawValue: 0x0a0b).description == "unknown version 0x0a0b")
    for text in ["", "1.2", "TLS 1.4", "tls 1.2", "unknown version 0x0a0b"] { #expect(TLSVersion(text) == nil) }
  }

  @Test("Later versions are greater")
  func order() {
    let versions: [TLSVersion] = [.ssl2, .ssl3, .tls10, .tls11, .tls12, .tls13]
    #expect(versions.shuffled().sorted() == versions)
    #expect(Set(versions + versions).count == 6)
  }
}
