import Glibc

/// The machine and the software with which a result was measured.
public struct Environment: Sendable, Equatable, Codable {
  /// The name of the machine.
  public var host = ""
  /// In a merged result, the names of all machines if there were several; the other fields describe the first one.
  public var hosts: [String]?
  /// The name and release of the kernel.
  public var kernel = ""
  /// The model of the processor.
  public var cpu = ""
  /// The number of processors that are online.
  public var cores = 0
  /// The physical memory in bytes.
  public var memoryBytes = 0
  /// The version text of OpenSSL.
  public var openssl = ""
  /// The version of apnscope.
  public var apnscope = ""
  /// The commit that this apnscope was built from, if known; followed by "+" with uncommitted changes.
  public var commit: String?
  /// The command line, which never contains secrets.
  public var command: [String] = []

  /// An environment of which nothing is known.
  public init() {}

  /// The version of apnscope, with the commit if it is known: "0.2.0 (a1b2c3d)".
  public var build: String { Self.build(apnscope, commit) }

  package static func build(_ version: String, _ commit: String?) -> String {
    commit.map { "\(version) (\($0))" } ?? version
  }

  /// Describes this machine, from the kernel's information.
  ///
  /// - Parameters:
  ///   - openssl: the version text of OpenSSL.
  ///   - apnscope: the version of apnscope.
  ///   - commit: the commit of the build, if known.
  ///   - command: the command line, without secrets.
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
