import Foundation

/// How much of the tests a run makes.
public enum TestRun {
  /// All seeds and everything that takes long, as `Scripts/test --all` asks for by the environment.
  public static let isWhole = ProcessInfo.processInfo.environment["APNSCOPE_TEST_ALL"] != nil
}

/// The seeds of a law: the first few of them, or all in a whole run.
///
/// A failure names its seed, and `Scripts/test 'Target.Suite/test'` runs it again, with `--all` also the later ones.
public func seeds(_ few: UInt64, of all: UInt64) -> ClosedRange<UInt64> { 1...(TestRun.isWhole ? all : few) }
