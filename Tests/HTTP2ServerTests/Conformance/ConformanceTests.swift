import Bytes
import HTTP2
import HTTP2Server
import Testing

/// Every requirement of RFC 9113 that a server which answers requests can break, by section. Those that cannot apply to
/// this one are in Documentation/http2-simulator.md.
@Suite("A server by RFC 9113")
struct ConformanceTests {
  static let all = connection + frames + streams + frameTypes + settings + windows + messages

  @Test("Each requirement of the RFC on a server is met", arguments: all) func requirement(requirement: Requirement) {
    requirement.check()
  }

  @Test("Every section with requirements on a server has some here") func sections() {
    let sections = [
      "3.4", "4.1", "4.2", "4.3", "4.3.1", "5.1", "5.1.1", "5.1.2", "5.2", "5.3", "5.4.1", "5.4.2", "5.5", "6.1", "6.2",
      "6.3", "6.4", "6.5", "6.5.2", "6.5.3", "6.6", "6.7", "6.8", "6.9", "6.9.1", "6.9.2", "6.9.3", "6.10", "7", "8.1",
      "8.1.1", "8.2.1", "8.2.2", "8.3", "8.3.1", "8.3.2", "8.4", "8.5", "8.6", "8.7", "10.5.1",
    ]
    #expect(Set(Self.all.map(\.section)) == Set(sections))
  }

  static let eight = [UInt8](repeating: 0, count: 8)
}
