import Foundation
import TestSupport
import Testing

/// The gateway's name, and what it stands for on this machine.
@Suite("load: the gateway's name", .waiting)
struct GatewayNameTests {
  @Test("A name that stands for another machine is refused, and one that stands for none ends it at once: 69")
  func names() throws {
    try Command.inFolder { command in
      let unknown = try command.run("load", "--plain", "--gateway", "gateway.invalid", "--give-up", "1h")
      #expect(unknown.status == 69 && unknown.errors.hasPrefix("apnscope: gateway.invalid: "), "\(unknown.errors)")

      // Names of this test alone, as far as the machine lets it have them.
      try command.write(
        Array("127.0.0.1 localhost local.test\n198.51.100.7 remote.test\n".utf8), "hosts")
      let script = "mount --bind hosts /etc/hosts && exec $apnscope load --plain --give-up 1ms --gateway"
      guard try command.shell("unshare -m mount --bind hosts /etc/hosts").status == 0 else { return }
      let outcome = try command.shell("unshare -m bash -c '\(script) remote.test:1'")
      #expect(outcome.status == 64, "\(outcome.errors)")
      #expect(
        outcome.errors.contains("remote.test, which is 198.51.100.7, is not this machine")
          && outcome.errors.contains("--allow-remote"), "\(outcome.errors)")
      let local = try command.shell("unshare -m bash -c '\(script) local.test:1'")
      // It was connected to, or would have been in a longer time.
      #expect(local.status == 69 && local.errors.hasPrefix("apnscope: local.test:1: "), "\(local.errors)")
      #expect(!local.errors.contains("no such host"), "\(local.errors)")
    }
  }
}
