import Testing

@testable import PacketCapture

/// Flows of a capture that was built to collide.
@Suite("Flow table")
struct FlowTableTests {
  /// Comparisons of flows, when each has been put in and is looked up once.
  private func comparisons(_ flows: [Flow]) -> Int {
    var table = FlowTable()
    for (slot, flow) in flows.enumerated() { table.insert(table.hash(flow), slot: slot) }
    var count = 0
    for (slot, flow) in flows.enumerated() {
      let found = table.find(table.hash(flow)) {
        count += 1
        return flows[$0] == flow
      }
      #expect(found == slot)
    }
    return count
  }

  /// `inspect` took 8.9 s for 40,000 such flows, and four times that for twice as many.
  @Test(
    "No host part of an IPv6 address makes flows collide",
    arguments: [0x9e37_79b9_7f4a_7c15, 0, .max, 1, 0x1234_5678, 0x8765_4321] as [UInt64])
  func chosenAddresses(host: UInt64) {
    let server = Endpoint(address: IPAddress(high: 0xfd00 << 48, low: 1), port: 2195)
    let flows = (0..<2_000).map { number in
      let address = IPAddress(high: 0x2001 << 48 + UInt64(number) * 0x1_0001, low: host)
      return Flow.of(source: Endpoint(address: address, port: 40_000), destination: server).flow
    }
    #expect(comparisons(flows) == flows.count)
  }

  @Test("Neither do ports, nor prefixes that are chosen")
  func chosenPorts() {
    let server = Endpoint(address: IPAddress(v4: 0x0a00_0001), port: 2195)
    let ports = (0..<2_000).map { number in
      Flow.of(
        source: Endpoint(address: IPAddress(v4: 0x0a00_0002), port: UInt16(30_000 + number)), destination: server
      ).flow
    }
    #expect(comparisons(ports) == ports.count)
    let prefixes = (0..<2_000).map { number in
      let address = IPAddress(high: 0x1234_5678, low: UInt64(number) << 32)
      return Flow.of(source: Endpoint(address: address, port: 40_000), destination: server).flow
    }
    #expect(comparisons(prefixes) == prefixes.count)
  }
}
