import COpenSSL
import TLSFoundation

/// The certificates that an authority has taken back.
///
/// `@unchecked Sendable` is valid because the list is filled and signed, or read, in `init`, and never changed then. The
/// interleavings that were looked at, of any two threads with the same list:
/// - Both look for a certificate (`holds`): `X509_CRL_get0_by_cert` sorts the entries when it is called first, under the
///   list's lock.
/// - One looks and the other writes, counts, verifies, or makes a later list of it (`copyEntries`, which duplicates
///   entries): these only read.
/// - One drops its last reference: `X509_CRL_free` counts down atomically.
@safe public final class RevocationList: @unchecked Sendable {
  /// The `X509_CRL`, owned by this object.
  let pointer: OpaquePointer

  /// Takes ownership of the caller's reference.
  private init(owning pointer: OpaquePointer) { unsafe self.pointer = pointer }

  /// Reads a list in PEM.
  public convenience init(file: String) throws(TLSError) {
    let text = try MemoryText(try CredentialSource(file: file).bytes)
    ERR_clear_error()
    guard let read = unsafe PEM_read_bio_X509_CRL(text.pointer, nil, { _, _, _, _ in -1 }, nil) else {
      throw .fromOpenSSL(.credentials, "\(file): is not a revocation list in PEM")
    }
    unsafe self.init(owning: read)
  }

  /// Creates a list with the earlier list's entries and these certificates; it is valid for ten years.
  convenience init(by issuer: Identity, revoking certificates: [Certificate], after earlier: RevocationList?)
    throws(TLSError)
  {
    guard let made = unsafe X509_CRL_new() else { throw .fromOpenSSL(.credentials, "out of memory") }
    unsafe self.init(owning: made)
    try setHead(issuer)
    try copyEntries(of: earlier)
    for certificate in certificates where !(unsafe holds(certificate.pointer)) { try add(certificate) }
    unsafe X509_CRL_sort(pointer)
    try extend(issuer, number: (earlier?.number ?? 0) + 1)
    guard unsafe X509_CRL_sign(pointer, issuer.key, EVP_sha256()) > 0 else { throw Self.failure() }
  }

  deinit { unsafe X509_CRL_free(pointer) }

  /// The number of revoked certificates.
  public var count: Int {
    guard let entries = unsafe X509_CRL_get_REVOKED(pointer) else { return 0 }
    return Int(unsafe apnscope_sk_X509_REVOKED_num(entries))
  }

  /// Whether it refuses that identity's certificate.
  public func holds(_ identity: Identity) -> Bool { unsafe holds(identity.certificate) }

  /// Whether that authority made it.
  func isSigned(by issuer: Identity) -> Bool {
    defer { ERR_clear_error() }
    return unsafe X509_CRL_verify(pointer, issuer.key) == 1
  }

  /// The list as PEM.
  public func pem() throws(TLSError) -> [UInt8] {
    unsafe try MemoryText.written("the revocation list cannot be written") {
      unsafe PEM_write_bio_X509_CRL($0, pointer) == 1
    }
  }

  private func holds(_ certificate: OpaquePointer) -> Bool {
    var entry: OpaquePointer?
    return unsafe X509_CRL_get0_by_cert(pointer, &entry, certificate) == 1
  }

  /// The list's number among its authority's lists, which increases.
  private var number: Int {
    let read = unsafe X509_CRL_get_ext_d2i(pointer, NID_crl_number, nil, nil)
    guard let read = unsafe read else { return 0 }
    let integer = unsafe read.assumingMemoryBound(to: ASN1_INTEGER.self)
    defer { unsafe ASN1_INTEGER_free(integer) }
    return unsafe ASN1_INTEGER_get(integer)
  }

  // MARK: making

  private func setHead(_ issuer: Identity) throws(TLSError) {
    let (begin, end) = unsafe (X509_gmtime_adj(nil, -86_400), X509_gmtime_adj(nil, Validity.maximumDays * 86_400))
    defer {
      unsafe ASN1_TIME_free(begin)
      unsafe ASN1_TIME_free(end)
    }
    guard unsafe X509_CRL_set_version(pointer, Int(X509_CRL_VERSION_2)) == 1,
      unsafe X509_CRL_set_issuer_name(pointer, X509_get_subject_name(issuer.certificate)) == 1,
      unsafe X509_CRL_set1_lastUpdate(pointer, begin) == 1, unsafe X509_CRL_set1_nextUpdate(pointer, end) == 1
    else { throw Self.failure() }
  }

  private func copyEntries(of earlier: RevocationList?) throws(TLSError) {
    guard let earlier, let entries = unsafe X509_CRL_get_REVOKED(earlier.pointer) else { return }
    for index in 0..<(unsafe apnscope_sk_X509_REVOKED_num(entries)) {
      let copy = unsafe X509_REVOKED_dup(apnscope_sk_X509_REVOKED_value(entries, index))
      // The list owns the added entry.
      guard unsafe copy != nil, unsafe X509_CRL_add0_revoked(pointer, copy) == 1 else {
        unsafe X509_REVOKED_free(copy)
        throw Self.failure()
      }
    }
  }

  private func add(_ certificate: Certificate) throws(TLSError) {
    let entry = unsafe X509_REVOKED_new()
    let date = unsafe X509_gmtime_adj(nil, 0)
    defer { unsafe ASN1_TIME_free(date) }
    guard unsafe X509_REVOKED_set_serialNumber(entry, X509_get_serialNumber(certificate.pointer)) == 1,
      unsafe X509_REVOKED_set_revocationDate(entry, date) == 1, unsafe X509_CRL_add0_revoked(pointer, entry) == 1
    else {
      unsafe X509_REVOKED_free(entry)
      throw Self.failure()
    }
  }

  private func extend(_ issuer: Identity, number: Int) throws(TLSError) {
    var context = unsafe X509V3_CTX()
    unsafe X509V3_set_ctx(&context, issuer.certificate, nil, nil, pointer, 0)
    let authorityKey = unsafe X509V3_EXT_conf_nid(nil, &context, NID_authority_key_identifier, "keyid:always")
    defer { unsafe X509_EXTENSION_free(authorityKey) }
    let integer = unsafe ASN1_INTEGER_new()
    defer { unsafe ASN1_INTEGER_free(integer) }
    guard unsafe authorityKey != nil, unsafe X509_CRL_add_ext(pointer, authorityKey, -1) == 1,
      unsafe ASN1_INTEGER_set(integer, number) == 1,
      unsafe X509_CRL_add1_ext_i2d(pointer, NID_crl_number, integer, 0, 0) == 1
    else { throw Self.failure() }
  }

  private static func failure() -> TLSError { .fromOpenSSL(.credentials, "no revocation list can be made") }
}
