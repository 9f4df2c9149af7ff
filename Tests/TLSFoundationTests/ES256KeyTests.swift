import COpenSSL
import Testing

@testable import TLSFoundation

/// Keys of provider tokens, and the topics of Apple's extension.
@Suite("Keys of provider tokens and topics of certificates")
struct ES256KeyTests {
  @Test("Only keys on P-256 are taken") func curves() {
    #expect(ES256Key(pem: Array("nothing".utf8)) == nil)
    #expect(ES256Key(pem: []) == nil)
  }

  /// Topics, each before a sequence of the kinds of pushes that it is for.
  @Test("The topics of the extension are read, and their kinds are not") func topics() {
    func text(_ text: String) -> [UInt8] { [0x0c, UInt8(text.utf8.count)] + Array(text.utf8) }
    func sequence(_ content: [UInt8]) -> [UInt8] { [0x30, 0x81, UInt8(content.count)] + content }
    let der = sequence(
      text("com.example.app") + sequence(text("app")) + text("com.example.app.voip") + sequence(text("voip")))
    #expect(Certificate.extensionTopics(der) == ["com.example.app", "com.example.app.voip"])
    for count in 0..<der.count {
      #expect(Certificate.extensionTopics(Array(der.prefix(count))).isEmpty)
    }
    #expect(Certificate.extensionTopics([0x30, 0x84, 0xff, 0xff, 0xff, 0xff]).isEmpty)
    #expect(Certificate.extensionTopics([0x30, 0x80, 0, 0]).isEmpty)
  }
}
