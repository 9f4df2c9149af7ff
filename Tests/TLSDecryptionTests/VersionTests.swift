import TLSDecryption
import Testing

@Suite struct VersionTests {
  @Test("Versions have the names that people use") func versionsHaveTheNamesThatPeopleUse() {
    #expect(TLSVersion.ssl3.description == "SSL 3.0")
    #expect(TLSVersion.tls13.description == "TLS 1.3")
    #expect(TLSVersion(rawValue: 0x0a0b).description == "unknown version 0x0a0b")
  }
}
