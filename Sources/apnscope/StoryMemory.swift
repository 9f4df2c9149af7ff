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
  /// `tell()`, with the failure that commands report.
  func tellOrFail() throws(FileFailure) {
    do { try tell() } catch { throw FileFailure(.writeFailed, error.folder, error.problem) }
  }
}
