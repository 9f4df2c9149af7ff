import COpenSSL
import Glibc
import TLSFoundation
import TLSTransport

/// What the system or TLS said to a client; `EAGAIN` when nothing came in time.
struct ClientError: Error, Equatable {
  let code: Int32
  static let reset = ClientError(code: ECONNRESET)
  static let late = ClientError(code: EAGAIN)
  static let pipe = ClientError(code: EPIPE)
  /// TLS failed, or ended without close_notify.
  static let tls = ClientError(code: EPROTO)
}

/// A provider in the hands of a test: one socket, plain or with TLS, that blocks for `patience` at most.
///
/// Used on one thread at a time, which may block: in tests that are `.waiting`.
@safe final class Client {
  private var file: Int32
  private var ssl: OpaquePointer?
  private var context: OpaquePointer?

  struct TLS {
    var directory: IdentityDirectory
    var topic: String
    var version = TLSVersion.tls12
    var topicCertificate: String { "\(directory.path)/\(topic).pem" }
    var topicKey: String { "\(directory.path)/\(topic).key" }
  }

  init(
    _ port: Int, tls: TLS? = nil, patience: Duration = .seconds(60), receiveBuffer: Int32? = nil,
    sendBuffer: Int32? = nil
  ) throws {
    file = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    guard file >= 0 else { throw ClientError(code: errno) }
    let (seconds, attoseconds) = patience.components
    let timeout = timeval(tv_sec: Int(seconds), tv_usec: Int(attoseconds / 1_000_000_000_000))
    set(SO_RCVTIMEO, timeout)
    set(SO_SNDTIMEO, timeout)
    // Every write a segment: tests say how bytes are cut.
    set(TCP_NODELAY, Int32(1), level: Int32(IPPROTO_TCP))
    if let receiveBuffer { set(SO_RCVBUF, receiveBuffer) }
    if let sendBuffer { set(SO_SNDBUF, sendBuffer) }
    do {
      try connect(port)
      if let tls { try shakeHands(tls) }
    } catch {
      Glibc.close(file)
      file = -1
      throw error
    }
  }

  deinit { close() }

  private func set<Value: BitwiseCopyable>(_ option: Int32, _ value: Value, level: Int32 = SOL_SOCKET) {
    var value = value
    // Safe: the value lives through the call.
    _ = unsafe setsockopt(file, level, option, &value, socklen_t(MemoryLayout<Value>.size))
  }

  private func connect(_ port: Int) throws {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = in_port_t(port).bigEndian
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    // Safe: an address of any family is passed as one of none.
    let result = unsafe withUnsafePointer(to: &address) {
      unsafe $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        unsafe Glibc.connect(file, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    guard result == 0 else { throw ClientError(code: errno) }
  }

  private func shakeHands(_ tls: TLS) throws {
    signal(SIGPIPE, SIG_IGN)
    guard let context = unsafe SSL_CTX_new(TLS_client_method()) else { throw ClientError.tls }
    unsafe self.context = context
    unsafe SSL_CTX_set_security_level(context, 0)
    let version = Int32(tls.version.rawValue)
    guard unsafe apnscope_SSL_CTX_set_min_proto_version(context, version) == 1,
      unsafe apnscope_SSL_CTX_set_max_proto_version(context, version) == 1,
      unsafe SSL_CTX_use_certificate_file(context, tls.topicCertificate, SSL_FILETYPE_PEM) == 1,
      unsafe SSL_CTX_use_PrivateKey_file(context, tls.topicKey, SSL_FILETYPE_PEM) == 1,
      let ssl = unsafe SSL_new(context)
    else { throw ClientError.tls }
    unsafe self.ssl = ssl
    unsafe SSL_set_fd(ssl, file)
    if unsafe SSL_connect(ssl) == 1 { return }
    let code = ERR_peek_error()
    ERR_clear_error()
    throw code == 0 ? ClientError(code: errno) : ClientError.tls
  }

  /// The client's own port.
  var port: Int {
    var address = sockaddr_in()
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    // Safe: an address of any family is passed as one of none.
    _ = unsafe withUnsafeMutablePointer(to: &address) {
      unsafe $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { unsafe getsockname(file, $0, &length) }
    }
    return Int(in_port_t(bigEndian: address.sin_port))
  }

  // MARK: writing

  /// Writes all of it, or throws.
  func send(_ bytes: [UInt8]) throws {
    let sent = sendSome(bytes)
    if let error = sent.error { throw error }
  }

  /// Writes as much as goes, and says how much that was.
  func sendSome(_ bytes: [UInt8]) -> (count: Int, error: ClientError?) {
    var offset = 0
    while offset < bytes.count {
      // Safe: not longer than what is left.
      let written = unsafe bytes[offset...].withUnsafeBytes { memory in
        if let ssl = unsafe ssl {
          unsafe Int(SSL_write(ssl, memory.baseAddress, Int32(min(memory.count, 16_384))))
        } else {
          unsafe Glibc.send(file, memory.baseAddress, memory.count, Int32(MSG_NOSIGNAL))
        }
      }
      if written <= 0 { return (offset, problem) }
      offset += written
    }
    return (offset, nil)
  }

  /// Writes past TLS.
  func sendRaw(_ bytes: [UInt8]) {
    // Safe: as long as it is.
    _ = unsafe bytes.withUnsafeBytes { unsafe Glibc.send(file, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
  }

  // MARK: reading

  /// Something is there to be read.
  var isReadable: Bool {
    var poller = pollfd(fd: file, events: Int16(POLLIN), revents: 0)
    // Safe: one entry.
    return unsafe poll(&poller, 1, 0) == 1
  }

  /// The next bytes; none at the end.
  func receive(_ most: Int = 65_536) throws -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: most)
    // Safe: not more than there is room for.
    let count = unsafe bytes.withUnsafeMutableBytes { memory in
      if let ssl = unsafe ssl {
        unsafe Int(SSL_read(ssl, memory.baseAddress, Int32(most)))
      } else {
        unsafe recv(file, memory.baseAddress, most, 0)
      }
    }
    if count > 0 { return Array(bytes[..<count]) }
    if count == 0, unsafe ssl == nil { return [] }
    if let ssl = unsafe ssl, unsafe SSL_get_shutdown(ssl) & SSL_RECEIVED_SHUTDOWN != 0 { return [] }
    throw problem
  }

  /// Everything up to the end.
  func receiveAll() throws -> [UInt8] {
    var all: [UInt8] = []
    while true {
      let bytes = try receive()
      if bytes.isEmpty { return all }
      all += bytes
    }
  }

  /// Waits for the end of the connection, which is a reset too; `false` when it does not come.
  func hasEnded() throws -> Bool {
    do {
      _ = try receiveAll()
      return true
    } catch let error as ClientError {
      return error != .late
    }
  }

  private var problem: ClientError {
    let code = errno
    ERR_clear_error()
    return ClientError(code: code == 0 ? EPROTO : code)
  }

  // MARK: the end

  /// Ends this half: close_notify, and FIN unless told otherwise.
  func finishWriting(withFIN: Bool = true) {
    if let ssl = unsafe ssl { unsafe SSL_shutdown(ssl) }
    if withFIN { shutdown(file, Int32(SHUT_WR)) }
  }

  /// Closes, with close_notify when TLS is spoken and it is wanted; bytes that were not read make it a RST.
  func close(notifies: Bool = true) {
    guard file >= 0 else { return }
    if let ssl = unsafe ssl, notifies { unsafe SSL_shutdown(ssl) }
    Glibc.close(file)
    file = -1
    unsafe SSL_free(ssl)
    unsafe SSL_CTX_free(context)
    unsafe ssl = nil
    unsafe context = nil
  }

  /// Closes with a RST.
  func reset() {
    set(SO_LINGER, linger(l_onoff: 1, l_linger: 0))
    close(notifies: false)
  }
}
