import TLSFoundation

/// The parts of a client's certificate that appear in records.
struct ClientCertificate {
  var subject: String
  /// Seconds since 1970.
  var ends: Int
  /// The environments that Apple's extensions name.
  var isForSandbox: Bool
  var isForProduction: Bool

  init(_ certificate: Certificate) {
    subject = certificate.subject
    ends = certificate.notAfterUnixSeconds
    isForSandbox = certificate.hasExtension(Certificate.developmentExtension)
    isForProduction = certificate.hasExtension(Certificate.productionExtension)
  }
}
