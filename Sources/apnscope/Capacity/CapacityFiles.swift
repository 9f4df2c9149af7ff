import ArgumentParser
import Bytes
import Reporting

/// The directory that a capacity run's results go to.
struct CapacityFiles {
  private let directory: String

  /// Makes the directory if there is none.
  init(_ directory: String) throws {
    self.directory = directory
    _ = try Outputs(directory, isDirectory: true)
    // Written at once, so that a directory that cannot be written to is known before the trials.
    try put("capacity.json", "")
  }

  func write(_ document: CapacityDocument, _ json: String) throws {
    let page = document.page(
      footer: "Made by apnscope \(Apnscope.version); 'apnscope report capacity.json' makes it again.")
    try put("capacity.json", json + "\n")
    try put("report.html", page.html)
    let (text, charts) = page.markdown()
    try put("report.md", text)
    for chart in charts { try put(chart.name, chart.text) }
  }

  private func put(_ name: String, _ text: String) throws {
    let outputs = try Outputs(directory, isDirectory: true)
    let write = try outputs.open(name)
    _ = write(Array(text.utf8).rawBytes)
    try outputs.check()
  }
}
