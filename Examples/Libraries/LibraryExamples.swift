import Foundation
import Testing

/// The examples of the pages in `Documentation/libraries`, one file each.
///
/// A page shows one paragraph of its example's body; `LibraryPageTests` compares them. This target sees only what is
/// public, as a package of somebody else does.
@Suite("Library examples")
struct LibraryExamples {
  static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()

  static func trace(_ name: String) -> String { root.appending(path: "Traces/\(name)").path }
}
