import ArgumentParser
import CommandFiles
import Dissection

/// The limits of what is kept of notifications to tell what became of each.
struct StoryLimitOptions: ParsableArguments {
  private static let range = 1 << 16...1 << 40

  @Option("Memory for what is kept of notifications; above, it goes to unnamed files in TMPDIR.", valueName: "bytes")
  var maxMemory = ByteCount(StoryCollector.Options().memory)

  func validate() throws {
    guard Self.range.contains(maxMemory.bytes) else {
      throw ValidationError("--max-memory takes 64KiB to 1TiB, not \(maxMemory.defaultValueDescription).")
    }
  }

  func apply(to options: inout StoryCollector.Options) {
    options.memory = maxMemory.bytes
    options.folder = TemporaryFiles.folder
  }
}

extension StoryCollector {
  /// `tell()`, with the failure that commands report.
  func tellOrFail() throws(FileFailure) {
    do { try tell() } catch { throw FileFailure(.writeFailed, error.folder, error.problem) }
  }
}
