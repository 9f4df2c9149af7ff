import ArgumentParser
import CommandFiles
import LoadTest
import Reporting

extension PayloadSizes {
  /// Reads the records in a file; `-` is standard input. Complains and throws an exit code.
  init(contentsOf path: String) throws {
    self.init()
    var lines = try RecordLines(path)
    while try lines.next() {
      do {
        try add(record: lines.text)
      } catch {
        throw lines.failure(error)
      }
    }
    guard self.count > 0 else {
      complain("\(path): no notification has a payload")
      throw ExitStatus.damaged
    }
    if clamped > 0 {
      complain(
        "\(path): \(grouped(clamped)) of \(grouped(self.count)) payloads have sizes that cannot be generated; the nearest is used"
      )
    }
  }
}
