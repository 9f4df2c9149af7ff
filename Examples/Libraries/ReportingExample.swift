import Foundation
import Measurement
import Reporting
import Testing

extension LibraryExamples {
  @Test("Reporting: a saved result becomes a page")
  func reporting() throws {
    let saved = Self.root.appending(path: "Reports/benchmark/run.json")

    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    let result = try decoder.decode(RunResult.self, from: Data(contentsOf: saved))
    let page = RunReport(result).page
    let html = page.html  // one file that needs nothing else
    let (markdown, charts) = page.markdown(charts: "chart-")  // links to chart-1.svg and so on
    let fit = try ScalabilityFit([.init(1, 80_000), .init(2, 159_000), .init(4, 310_000), .init(8, 590_000)])
    let atTwelve = fit.throughput(at: 12)

    #expect(html.hasPrefix("<!DOCTYPE html>"))
    #expect(markdown.hasPrefix("# "))
    #expect(charts.first?.name == "chart-1.svg")
    #expect(atTwelve.map { (590_000...960_000).contains($0) } == true)
  }
}
