import Testing

@testable import Measurement

/// Conditions on ledgers: what they accept, and that only what is proven passes.
@Suite("Expectations")
struct ExpectationTests {
  private static func ledger(_ change: (inout ProviderVerdict) -> Void = { _ in }) -> Ledger {
    var ledger = Ledger()
    (ledger.gateway.received, ledger.gateway.accepted, ledger.gateway.discarded) = (1_000, 980, 19)
    ledger.gateway.rejected = ["8": 1]
    var verdict = ProviderVerdict()
    (verdict.sendings, verdict.discarded, verdict.sentAgain) = (1_000, 19, 19)
    (verdict.stories.accepted, verdict.stories.recovered, verdict.stories.rejected) = (961, 19, 1)
    verdict.resend = RecoveryTimes(p50S: 0.1, p99S: 2, maxS: 3)
    change(&verdict)
    ledger.verdict = verdict
    return ledger
  }

  private func passes(_ text: String, _ ledger: Ledger) throws -> Bool { try Expectation(text).judge(ledger).passed }

  @Test("A condition holds exactly where its comparison does")
  func comparisons() throws {
    for (sign, passing) in [("<", [false, false, true]), ("<=", [false, true, true]), ("=", [false, true, false])] {
      #expect(try [979, 980, 981].map { try passes("accepted\(sign)\($0)", Self.ledger()) } == passing, "\(sign)")
    }
    for (sign, passing) in [(">", [true, false, false]), (">=", [true, true, false])] {
      #expect(try [979, 980, 981].map { try passes("accepted \(sign) \($0)", Self.ledger()) } == passing, "\(sign)")
    }
  }

  @Test("Open notifications pass no limit that they may exceed, and the reason says so")
  func open() throws {
    let ledger = Self.ledger {
      ($0.stories.lost, $0.stories.open) = (2, 5)
      ($0.stories.openReasons[.afterRecording], $0.stories.notSeenAgain[.afterRecording]) = (5, 3)
    }
    // From 2 to 5 are lost.
    #expect(try passes("lost<=5", ledger) && passes("lost>=2", ledger) && passes("lost<10", ledger))
    for text in ["lost<=4", "lost>=3", "lost>2", "lost=2", "lost=5", "lost<3"] {
      let outcome = try Expectation(text).judge(ledger)
      #expect(!outcome.passed && outcome.reason?.hasPrefix("3 are open: ") == true, "\(text): \(outcome)")
    }
    for text in ["lost<=1", "lost>=6", "lost=1"] {
      let outcome = try Expectation(text).judge(ledger)
      #expect(!outcome.passed && outcome.reason == nil, "\(text)")
    }
    #expect(try !passes("accepted_twice<=0", ledger) && passes("accepted_twice<=5", ledger))
  }

  @Test("Open notifications without any decision may be lost, and others may not")
  func undecided() throws {
    let ledger = Self.ledger {
      ($0.stories.open, $0.stories.openReasons[.unanswered], $0.undecided) = (5, 5, 2)
    }
    let outcome = try Expectation("lost<=0").judge(ledger)
    #expect(!outcome.passed && outcome.reason?.hasPrefix("2 are open: 5 accepted or not") == true, "\(outcome)")
    #expect(try passes("lost<=2", ledger) && !passes("lost>=1", ledger) && ledger.verdict?.mayBeLost == 2)
    let decided = Self.ledger { ($0.stories.open, $0.stories.openReasons[.unanswered], $0.undecided) = (5, 5, 0) }
    #expect(try passes("lost<=0", decided) && !passes("accepted_twice<=0", decided))
  }

  @Test("Notifications that were left out may be anything")
  func notObserved() throws {
    let ledger = Self.ledger { $0.notObserved = 4 }
    for text in [
      "lost<=0", "accepted_twice<=0", "notifications<=981", "resend_max<1h", "reconnect_max<1h",
      "one_notification_connections<=100", "most_connections_per_s<=100", "sent_to_listed<=0",
    ] {
      let outcome = try Expectation(text).judge(ledger)
      #expect(!outcome.passed && outcome.reason?.contains("4 notifications were left out") == true, "\(text)")
    }
    #expect(try passes("lost<=4", ledger) && passes("notifications<=985", ledger) && passes("received=1000", ledger))
  }

  @Test("A time passes only if what never happened would not be in it")
  func never() throws {
    #expect(try passes("resend_p99<=2s", Self.ledger()) && !passes("resend_p99<2s", Self.ledger()))
    let forgetful = Self.ledger { ($0.sentAgain, $0.notSentAgain) = (9, 9) }
    // One was accepted before the gateway read what it discarded.
    #expect(try passes("resend_p50<1s", forgetful))
    let outcome = try Expectation("resend_p99<1h").judge(forgetful)
    #expect(!outcome.passed && outcome.reason == "9 of 19 discarded sendings were not sent again")
    #expect(try passes("resend_p99>=2s", forgetful))
    let perfect = Self.ledger {
      ($0.discarded, $0.sentAgain, $0.resend) = (0, 0, nil)
    }
    #expect(try passes("resend_p99<1ms", perfect))
  }

  @Test("Lists that are cut prove no upper limit") func cut() throws {
    let ledger = Self.ledger {
      ($0.feedback.sentToListed, $0.feedback.isCut) = (0, true)
      ($0.errorsOmitted, $0.reconnect) = (3, nil)
    }
    #expect(try !passes("sent_to_listed=0", ledger) && !passes("sent_to_listed<=9", ledger))
    #expect(try passes("sent_to_listed>=0", ledger) && !passes("reconnect_max<1h", ledger))
  }

  @Test("Tokens are those that begin so")
  func tokens() throws {
    let ledger = Self.ledger {
      var token = ProviderVerdict.Token(prefix: "43bf")
      (token.sent, token.accepted, token.rejected) = (3, 2, 1)
      $0.tokens = [token]
    }
    #expect(try passes("token=43BF,count=2", ledger) && passes("token = 43bf, sent>=3", ledger))
    #expect(try !passes("token=43bf,rejected=0", ledger))
    #expect(try Expectation("token=43BF,count=2").token == "43bf")
  }

  @Test("Without a verdict nothing that it knows passes")
  func withoutVerdict() throws {
    var ledger = Self.ledger()
    ledger.verdict = nil
    for text in ["lost<=0", "token=43bf,count=0", "resend_p99<1h"] {
      let expectation = try Expectation(text)
      #expect(expectation.needsVerdict && !expectation.judge(ledger).passed)
      #expect(expectation.judge(ledger).reason == "there is no verdict")
    }
    #expect(try !Expectation("received>=1").needsVerdict && passes("received>=1", ledger))
  }

  @Test(
    "Mistakes are named",
    arguments: [
      ("lost", "has no <, > or ="), ("losses<=0", "unknown metric 'losses'; available: accepted, accepted_twice,"),
      ("lost<=0<1", "is more than one condition"),
      ("resend_p99<5", "takes a time such as 500us, 5ms or 2s; '5' has no unit"),
      ("resend_p99=5s", "= is for counts"), ("token=xyz,count=1", "takes hexadecimal digits and a condition"),
      ("token=43", "takes hexadecimal digits and a condition"), ("token=43,counts=1", "unknown metric 'counts'"),
      ("token=,count=1", "takes hexadecimal digits"), ("accepted>=many", "'many' is not a number"),
    ])
  func mistakes(text: String, message: String) {
    let error = #expect(throws: Condition.SyntaxError.self) { try Expectation(text) }
    #expect(error?.description.contains(message) == true, "\(String(describing: error))")
  }
}
