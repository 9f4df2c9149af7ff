import GatewaySimulator
import LoadTest
import Measurement
import Testing

extension LibraryExamples {
  @Test("LoadTest: a load is planned, driven and measured")
  func load() async throws {
    var options = SimulatorOptions()
    options.gateway = .init(host: "127.0.0.1", port: 0)
    options.feedback = nil
    options.behavior.rejections = [.init(.every(200))]
    let simulator = try await Simulator.start(options, feedbackList: FeedbackList(path: nil))
    let port = try #require(simulator.gateway?.port)

    var plan = LoadPlan()
    plan.gateway.host = "127.0.0.1"
    plan.gateway.port = port
    plan.count = 1_000
    plan.pace = .scheduled(.constant(10_000), isPoisson: true)
    plan.connections.count = 2
    plan.workload.payload = .sizes(.init(100...200))
    let runner = try LoadRunner(plan, tls: nil)
    let outcome = try await runner.run { progress in print(progress.writtenPerSecond) }
    let result = outcome.result(Environment())
    let agree = result.notifications.generated == result.notifications.accepted + result.notifications.rejected

    let books = await simulator.stop().gateway
    #expect(agree)
    #expect(result.notifications.generated == 1_000)
    #expect(result.notifications.rejected > 0)
    #expect(result.sendings.accepted == books.accepted)
  }
}
