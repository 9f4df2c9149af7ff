import Dissection
import Pipeline

/// A user who writes down all notices, and asks for an end after a number of batches.
final class ReadingRecorder: ReadingObserver {
  private(set) var notices: [String] = []
  private(set) var ended = 0
  /// Batches after which an end is asked for; `nil`: none.
  var batches: Int?
  private(set) var isStopRequested = false

  func takeStopRequest() -> Bool {
    defer { isStopRequested = false }
    return isStopRequested
  }

  func show(_ progress: DissectionProgress) {
    guard let left = batches else { return }
    batches = left - 1
    if left <= 1 { isStopRequested = true }
  }

  func endProgress() { ended += 1 }
  func stop() { isStopRequested = true }

  func receive(_ notice: ReadingNotice) {
    switch notice {
    case .interpreted(let input, _): notices.append("interpreted \(input.title)")
    case .warning(let input, _): notices.append("warning \(input.title)")
    case .failure(let input, let error): notices.append("failure \(input.title) \(error.kind)")
    case .found(let name): notices.append("found \(name)")
    case .leftOut(let folder, let files): notices.append("left out \(folder.name) \(files)")
    case .interface: notices.append("interface")
    case .answersNotKept(let count): notices.append("answers not kept \(count)")
    case .fatesNotKept(let connections): notices.append("fates not kept \(connections)")
    case .selectionCut: notices.append("selection cut")
    case .hasGrown: notices.append("has grown")
    }
  }
}
