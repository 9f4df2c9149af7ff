import Glibc

/// The machine and the software that a result was measured with.
public struct Environment: Sendable, Equatable, Codable {
  public var host = ""
  /// In a merged result, the names of all machines if there were several; the other fields describe the first one.
  public var hosts: [String]?
  public var kernel = ""
  public var cpu = ""
  public var cores = 0
  public var memoryBytes = 0
  /// OpenSSL's version text.
  public var openssl = ""
  public var apnscope = ""
  /// The commit that this apnscope was built from, if known; followed by "+" with uncommitted changes.
  public var commit: String?
  /// The command line, which never contains secrets.
  public var command: [String] = []

  public init() {}

  /// apnscope's version, and in brackets the commit where it is known: "0.2.0 (a1b2c3d)".
  public var build: String { Self.build(apnscope, commit) }

  package static func build(_ version: String, _ commit: String?) -> String {
    commit.map { "\(version) (\($0))" } ?? version
  }

  /// The system's description of itself.
  public static func current(
    openssl: String, apnscope: String, commit: String? = nil, command: [String]
  ) -> Environment {
    var environment = Environment()
    var names = utsname()
    if unsafe uname(&names) == 0 {
      environment.host = text(names.nodename)
      environment.kernel = "\(text(names.sysname)) \(text(names.release))"
    }
    environment.cores = max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN)))
    environment.memoryBytes = max(0, sysconf(Int32(_SC_PHYS_PAGES))) * max(0, sysconf(Int32(_SC_PAGESIZE)))
    environment.cpu = processorName()
    environment.openssl = openssl
    environment.apnscope = apnscope
    environment.commit = commit
    environment.command = command
    return environment
  }

  private static func text<T>(_ characters: T) -> String {
    // Safe: the system writes a NUL-terminated name into the array, which lives through the call.
    unsafe withUnsafeBytes(of: characters) { bytes in
      unsafe String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
    }
  }

  private static func processorName() -> String {
    let descriptor = unsafe open("/proc/cpuinfo", O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return "" }
    defer { close(descriptor) }
    var bytes = [UInt8](repeating: 0, count: 16_384)
    // Safe: at most the array's length is written.
    let count = unsafe read(descriptor, &bytes, bytes.count)
    guard count > 0 else { return "" }
    let lines = String(decoding: bytes[..<count], as: UTF8.self).split(separator: "\n")
    guard let line = lines.first(where: { $0.hasPrefix("model name") }), let colon = line.firstIndex(of: ":") else {
      return ""
    }
    return String(line[line.index(after: colon)...].drop { $0 == " " })
  }
}
