import Bytes
import HTTP2
import TestSupport
import Testing

@testable import ProviderAPI

/// Where the signature of a provider token is, and that nothing but it tells two tokens of one second apart.
@Suite("Signatures of provider tokens")
struct SignatureTests {
  private static let token = String(repeating: "0f", count: 32)

  private static func masked(_ text: String) -> String {
    var bytes = Array(text.utf8)
    for place in ProviderToken.signatures(in: bytes.rawBytes).joined() { bytes[place] = UInt8(ascii: "#") }
    return String(decoding: bytes, as: UTF8.self)
  }

  @Test("The signature is what follows the second full stop, and other text is none")
  func places() {
    let header = ProviderJWT.base64(#"{"alg":"ES256","kid":"ABC123DEFG"}"#)
    let claims = ProviderJWT.base64(#"{"iss":"DEF123GHIJ","iat":1795578551}"#)
    let blank = String(repeating: "#", count: ProviderJWT.secret.count)
    #expect(Self.masked("bearer \(header).\(claims).\(ProviderJWT.secret)") == "bearer \(header).\(claims).\(blank)")
    #expect(Self.masked("BEARER a.b.c") == "BEARER a.b.#")
    #expect(Self.masked("x=\(header).\(claims).\(ProviderJWT.secret); y=1") == "x=\(header).\(claims).\(blank); y=1")
    let twice = "\(header).\(claims).\(ProviderJWT.secret)"
    #expect(Self.masked("\(twice) \(twice)") == "\(header).\(claims).\(blank) \(header).\(claims).\(blank)")
    for text in ["com.example.tide.voip", "bearer a.b", "/3/device/\(Self.token)", "", "1.2.3", header] {
      #expect(Self.masked(text) == text)
    }
  }

  @Test("Provider tokens that were issued in the same second by the same key are two, and a repeated one is not")
  func sameSecond() {
    var talk = Conversation()
    let jwts = ["A", "B", "A"].map {
      ProviderJWT.make(
        keyID: "ABC123DEFG", teamID: "DEF123GHIJ", issuedAt: "1795578551",
        signature: String(repeating: $0, count: 86))
    }
    for (number, jwt) in jwts.enumerated() {
      talk.push(UInt32(2 * number + 1), Conversation.fields(Self.token, jwt: jwt))
    }
    let (session, log) = talk.read()
    #expect(log.requests.map(\.providerToken) == [1, 2, 1] && log.requests.allSatisfy { $0.isNumbered })
    #expect(session.providerTokens.count == 2 && session.areProviderTokensCounted)
    #expect(session.providerTokens.compactMap { try? $0.get().issuedAt } == [1_795_578_551, 1_795_578_551])
  }
}
