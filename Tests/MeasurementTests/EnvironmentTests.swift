import Foundation
import Measurement
import Testing

@Suite("The machine of a result")
struct EnvironmentTests {
  private func file(_ path: String) throws -> String {
    try String(contentsOfFile: path, encoding: .utf8).trimmingCharacters(in: .whitespacesAndNewlines)
  }

  @Test("It is described as the system describes itself")
  func current() throws {
    let environment = Environment.current(openssl: "OpenSSL 3", apnscope: "0.2.0", commit: "abc", command: ["a", "b"])
    #expect(environment.host == (try file("/proc/sys/kernel/hostname")))
    #expect(environment.kernel == "Linux \(try file("/proc/sys/kernel/osrelease"))")
    #expect(environment.cores == sysconf(Int32(_SC_NPROCESSORS_ONLN)))
    #expect(environment.memoryBytes == Int(ProcessInfo.processInfo.physicalMemory))
    let model = try file("/proc/cpuinfo").split(separator: "\n").first { $0.hasPrefix("model name") }
    #expect(environment.cpu == (model?.split(separator: ": ", maxSplits: 1).last.map(String.init) ?? ""))
    #expect(environment.openssl == "OpenSSL 3" && environment.apnscope == "0.2.0" && environment.commit == "abc")
    #expect(environment.command == ["a", "b"] && environment.hosts == nil)
  }

  @Test("A build is named by its version, and its commit where that is known")
  func build() {
    var environment = Environment()
    environment.apnscope = "0.2.0"
    #expect(environment.build == "0.2.0")
    environment.commit = "a1b2c3d+"
    #expect(environment.build == "0.2.0 (a1b2c3d+)")
  }
}
