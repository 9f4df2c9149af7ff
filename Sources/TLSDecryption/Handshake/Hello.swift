import TLSFoundation

/// The extensions of a hello that decryption needs.
struct HelloExtensions {
  private static let preSharedKeyCode = 41

  var encryptThenMAC = false
  var extendedMasterSecret = false
  /// A client's ticket; empty if a side only announces support for tickets.
  var sessionTicket: [UInt8]?
  var earlyData = false
  /// The identities of sessions that a client offers to resume in TLS 1.3.
  var preSharedKeys: [[UInt8]] = []
  var selectsPreSharedKey = false
  /// The version number that a server selected, unchanged.
  var selectedVersion: UInt16?
  /// The protocols that a client offers and a server chooses (ALPN, RFC 7301), at most 8.
  var applicationProtocols: [String] = []
  /// The group of a server's key share.
  var keyShareGroup: UInt16?

  init(_ reader: inout FieldReader, isClient: Bool) {
    guard var list = reader.vector16().map(FieldReader.init) else { return }
    while let code = list.uint16(), let data = list.vector16() {
      var fields = FieldReader(data)
      switch code {
      case 16:
        guard var names = fields.vector16().map(FieldReader.init) else { break }
        while applicationProtocols.count < 8, let name = names.vector8() {
          applicationProtocols.append(String(decoding: name, as: UTF8.self))
        }
      case 22: encryptThenMAC = true
      case 23: extendedMasterSecret = true
      case 35: sessionTicket = Array(data)
      case 42: earlyData = true
      case 43 where !isClient: selectedVersion = fields.uint16().map(UInt16.init)
      case 51 where !isClient, 40 where !isClient: keyShareGroup = fields.uint16().map(UInt16.init)
      case Self.preSharedKeyCode where isClient:
        guard var identities = fields.vector16().map(FieldReader.init) else { break }
        while preSharedKeys.count < 16, let identity = identities.vector16(), identities.bytes(4) != nil {
          preSharedKeys.append(Array(identity))
        }
      case Self.preSharedKeyCode: selectsPreSharedKey = true
      default: break
      }
    }
  }
}

/// version u16 | random 32 | session id | suites | compressions | extensions
struct ClientHello {
  var version: TLSVersion
  var random: [UInt8]
  var sessionID: [UInt8]
  var extensions: HelloExtensions

  init?(_ body: ArraySlice<UInt8>) {
    var reader = FieldReader(body)
    guard let version = reader.uint16(), let random = reader.bytes(32), let sessionID = reader.vector8(),
      reader.vector16() != nil, reader.vector8() != nil
    else { return nil }
    self.version = TLSVersion(rawValue: UInt16(version))
    self.random = Array(random)
    self.sessionID = Array(sessionID)
    extensions = HelloExtensions(&reader, isClient: true)
  }
}

/// version u16 | random 32 | session id | suite u16 | compression u8 | extensions; drafts of TLS 1.3 before the 22nd
/// leave out session id and compression.
struct ServerHello {
  var version: TLSVersion
  /// The draft number of TLS 1.3; 0 for the standard.
  var draft = 0
  var random: [UInt8]
  var sessionID: [UInt8] = []
  var suite: CipherSuite
  var compression = 0
  var extensions: HelloExtensions

  /// The random of a HelloRetryRequest: the hash of "HelloRetryRequest".
  private static let retryRandom: [UInt8] = [
    0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91,
    0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
  ]
  var isRetryRequest: Bool { random == Self.retryRandom }

  init?(_ body: ArraySlice<UInt8>) {
    var reader = FieldReader(body)
    guard let version = reader.uint16(), let random = reader.bytes(32) else { return nil }
    self.random = Array(random)
    let isOldDraft = version >> 8 == 0x7f
    if !isOldDraft {
      guard let sessionID = reader.vector8() else { return nil }
      self.sessionID = Array(sessionID)
    }
    guard let suite = reader.uint16() else { return nil }
    self.suite = CipherSuite(code: UInt16(suite))
    if !isOldDraft {
      guard let compression = reader.uint8() else { return nil }
      self.compression = compression
    }
    extensions = HelloExtensions(&reader, isClient: false)
    let selected = extensions.selectedVersion ?? UInt16(version)
    if selected >> 8 == 0x7f {
      self.version = .tls13
      draft = Int(selected & 0xff)
    } else {
      self.version = TLSVersion(rawValue: selected)
    }
  }
}

/// A chain of certificates; only its first, the sender's own, matters here.
enum CertificateMessage {
  /// The sender's certificate in DER; `nil` when it sent none or the message is damaged.
  static func first(_ body: ArraySlice<UInt8>, _ version: TLSVersion) -> [UInt8]? {
    var reader = FieldReader(body)
    if version >= .tls13 { guard reader.vector8() != nil else { return nil } }
    guard var list = reader.vector24().map(FieldReader.init), let certificate = list.vector24(), !certificate.isEmpty
    else { return nil }
    return Array(certificate)
  }
}

/// A session ticket that a server hands out.
enum NewSessionTicket {
  static func ticket(_ body: ArraySlice<UInt8>, _ version: TLSVersion) -> [UInt8]? {
    var reader = FieldReader(body)
    guard reader.bytes(4) != nil else { return nil }
    if version >= .tls13 { guard reader.bytes(4) != nil, reader.vector8() != nil else { return nil } }
    return reader.vector16().map(Array.init)
  }
}

/// A premaster secret, encrypted to the server's RSA key.
enum ClientKeyExchange {
  /// `nil` with another key exchange. SSL 3.0 has no length before it, and some clients omitted it in later versions,
  /// too.
  static func encryptedPremaster(_ body: ArraySlice<UInt8>, _ hello: ServerHello?) -> [UInt8]? {
    if let hello, !hello.suite.usesRSAKeyExchange { return nil }
    if hello?.version == .ssl3 { return Array(body) }
    var reader = FieldReader(body)
    return Array(reader.vector16() ?? body)
  }
}

/// A server's further answers to a ClientHello of TLS 1.3.
enum EncryptedExtensions {
  static func extensions(_ body: ArraySlice<UInt8>) -> HelloExtensions {
    var reader = FieldReader(body)
    return HelloExtensions(&reader, isClient: false)
  }
}
