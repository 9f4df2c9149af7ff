import Analysis
import CommandFiles

extension StoryCollector.Options {
  /// - Parameter limits: of the reading.
  mutating func apply(_ limits: LimitOptions) {
    memory = limits.storyMemory
    folder = TemporaryFiles.folder
  }
}

extension StoryCollector {
  /// `write()`, with the failure that commands report.
  func writeOrFail() throws(FileFailure) {
    do { try write() } catch { throw FileFailure(.writeFailed, error.folder, error.problem) }
  }
}
