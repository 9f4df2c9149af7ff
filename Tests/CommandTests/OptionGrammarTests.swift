import Testing

@testable import apnscope

/// What files of settings know about options, which comes from the parser.
@Suite("option grammar")
struct OptionGrammarTests {
  private func names(_ grammar: OptionGrammar, _ isWanted: (OptionGrammar.Form) -> Bool) -> Set<String> {
    Set(grammar.forms.filter { isWanted($0.value) }.keys)
  }

  private func isFlag(_ form: OptionGrammar.Form) -> Bool {
    if case .flag = form { true } else { false }
  }

  private func isRepeating(_ form: OptionGrammar.Form) -> Bool {
    if case .option(isRepeating: true) = form { true } else { false }
  }

  @Test("Every option that is suggested by meaning is one of a command")
  func meanings() throws {
    let grammars = [
      try OptionGrammar(of: Load.self), try OptionGrammar(of: Decode.self), try OptionGrammar(of: Inspect.self),
      try OptionGrammar(of: Simulate.self),
    ]
    let options = Set(grammars.flatMap(\.forms.keys))
    #expect(FamiliarOption.meanings.values.joined().filter { !options.contains($0) } == [])
  }

  @Test("Options that may be said several times are known as such")
  func repeating() throws {
    #expect(
      names(try OptionGrammar(of: Load.self), isRepeating) == ["stage", "threshold", "label", "identity", "topic"])
    #expect(
      names(try OptionGrammar(of: Simulate.self), isRepeating) == [
        "provider-key", "http2-rule", "http2-fault", "http2-limit", "reject", "wrong-environment",
        "local-push", "local-push-silence", "local-push-restart", "expect", "until",
      ])
  }

  @Test("Flags are told from options that take a value")
  func flags() throws {
    let load = names(try OptionGrammar(of: Load.self), isFlag)
    #expect(load.isSuperset(of: ["plain", "print-plan", "help"]))
    #expect(load.isDisjoint(with: ["rate", "for", "tls13-suites", "plan"]))
    let simulate = try OptionGrammar(of: Simulate.self)
    #expect(names(simulate, isFlag).isSuperset(of: ["plain", "no-feedback"]))
    #expect(names(simulate) { !isFlag($0) }.isSuperset(of: ["for", "settings", "feedback"]))
  }
}
