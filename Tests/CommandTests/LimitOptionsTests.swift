import Testing

@testable import apnscope

@Suite("limit options")
struct LimitOptionsTests {
  @Test("Every limit on what is read is checked and set, each by its own option")
  func limits() throws {
    let options = Set(try OptionGrammar(of: LimitOptions.self).forms.keys).subtracting(["help"])
    #expect(Set(LimitOptions.names) == options)
    // Each with a number of its own, so that none takes another's place.
    var arguments: [String] = []
    for (index, name) in LimitOptions.names.enumerated() { arguments += ["--\(name)", "\(100_001 + index)"] }
    let limited = "\(try LimitOptions.parse(arguments).dissection)"
    for (index, name) in LimitOptions.names.enumerated() {
      #expect(limited.contains(": \(100_001 + index)"), "\(name)")
    }
  }

  @Test("Without options the limits are those of the library")
  func usualLimits() throws {
    let options = try LimitOptions.parse([]).dissection
    #expect("\(options)" == "\(LimitOptions.usual)")
  }
}
