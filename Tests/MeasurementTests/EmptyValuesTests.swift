import Measurement
import Testing

/// A count that begins with 1 is wrong by 1 for ever.
@Suite("Values before anything was counted")
struct EmptyValuesTests {
  /// The stored properties that are not 0, empty, absent or false, with their values.
  private static func set(_ value: Any, at path: String = "") -> [String] {
    switch value {
    case let number as Int: return number == 0 ? [] : ["\(path) = \(number)"]
    case let number as Double: return number == 0 ? [] : ["\(path) = \(number)"]
    case let text as String: return text.isEmpty ? [] : ["\(path) = \(text)"]
    case let flag as Bool: return flag ? ["\(path) = true"] : []
    case let histogram as LatencyHistogram: return histogram.count == 0 ? [] : ["\(path) is not empty"]
    default: break
    }
    let mirror = Mirror(reflecting: value)
    guard mirror.displayStyle != .enum else { return ["\(path) = \(value)"] }
    return mirror.children.flatMap { child in
      set(child.value, at: child.label.map { $0 == "some" || path.isEmpty ? $0 : "\(path).\($0)" } ?? "\(path)[]")
    }
  }

  @Test("A result, and what it consists of")
  func results() {
    #expect(Self.set(RunResult()) == ["schema = 1", "kind = load", "verdict.limitedBy = schedule"])
    #expect(Self.set(RunResult.Sample()) == [])
    #expect(Self.set(RunResult.Phase()) == ["name = connect"])
    #expect(Self.set(RunResult.Bins()) == ["lengthS = 0.1"])
    #expect(Self.set(RunResult.Stalls()) == [])
    #expect(Self.set(RunResult.Merged()) == ["together = true"])
    #expect(Self.set(RunResult.Replay()) == [])
    #expect(RunResult.currentMeasure == 2 && RunResult.Bins.most == 36_000)
    #expect(RunResult.Stalls.shortestMs == 10 && RunResult.Stalls.maximumListed == 1_000)
  }

  @Test("A ledger, a trial and the progress of a run")
  func others() {
    #expect(Self.set(Ledger()) == ["schema = 1", "kind = simulate"])
    #expect(
      Self.set(CapacityTrial()) == [
        "purpose = search", "verdict = measured", "connections = 1", "availableCores = 1",
      ])
    #expect(Self.set(LoadProgress()) == ["phase = connect"])
    #expect(Self.set(Environment()) == [])
  }

  @Test("An inspection and a trace")
  func inspections() {
    let commands = Array(repeating: 0, count: 3)
    #expect(InspectionReport().notificationsByCommand == commands)
    #expect(InspectionReport.ConnectionRow().commands == commands)
    #expect(Self.set(InspectionReport()) == [] && Self.set(InspectionReport.File()) == [])
    #expect(Self.set(InspectionReport.Summary()) == [])
    #expect(Self.set(InspectionReport.ConnectionRow()) == ["end = captureEnd"])
    #expect(Self.set(InspectionReport.TLSRow()) == [] && Self.set(InspectionReport.ErrorRow()) == [])
    #expect(Self.set(TraceReport()) == ["sent.widthS = 1.0"])
    #expect(Self.set(TraceReport.Connection()) == [])
  }

  @Test("Traffic was read when any of it was")
  func hasRead() {
    typealias Summary = InspectionReport.Summary
    #expect(!Summary().hasRead)
    for path in [\.notifications, \.errorResponses, \.feedbackTuples, \.readFeedbackConnections]
      as [WritableKeyPath<Summary, Int>]
    {
      var summary = Summary()
      summary[keyPath: path] = 1
      #expect(summary.hasRead, "\(path)")
    }
    for path in [\.packets, \.connections, \.gaps, \.malformed, \.undecryptedConnections]
      as [WritableKeyPath<Summary, Int>]
    {
      var summary = Summary()
      summary[keyPath: path] = 1
      #expect(!summary.hasRead, "\(path)")
    }
  }
}
