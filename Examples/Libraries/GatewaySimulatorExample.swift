import GatewaySimulator
import Testing

extension LibraryExamples {
  @Test("GatewaySimulator: a gateway with faults listens, and ends with its books")
  func simulator() async throws {
    var options = SimulatorOptions()
    options.gateway = .init(host: "127.0.0.1", port: 0)
    options.feedback = nil
    options.behavior.rejections = [.init(.every(1_000), status: .invalidToken)]
    options.behavior.response.delay = .milliseconds(100) ... .milliseconds(800)
    options.behavior.shutdownAfter = 50_000
    let list = try FeedbackList(path: nil)  // nil: in memory
    let simulator = try await Simulator.start(options, feedbackList: list)
    let port = simulator.gateway?.port
    let ledger = await simulator.stop()  // received = accepted + rejected + discarded

    #expect(port != 0)
    #expect(ledger.gateway.received == 0)
  }
}
