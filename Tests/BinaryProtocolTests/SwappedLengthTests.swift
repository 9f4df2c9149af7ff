import Testing

@testable import BinaryProtocol

/// Lengths that a sender wrote in the order of its processor.
@Suite("Swapped lengths")
struct SwappedLengthTests {
  @Test(
    "A length that is usual with its bytes swapped is said to be, and others are not",
    arguments: [
      (ParseError.Problem.tokenTooLong(8_192), 32), (.frameTooLong(0x5900_0000), 89),
      (.frameTooLong(0x0104_0000), 1_025),
      (.payloadTooLong(0x2100), 33), (.itemOverrun(item: 1, length: 8_192), 32),
      (.itemOverrun(item: 2, length: 0x5800), 88), (.itemOverrun(item: 3, length: 0x0400), 4),
      (.itemOverrun(item: 5, length: 0x0100), 1), (.tokenTooLong(65_535), nil), (.tokenTooLong(0x0401), nil),
      (.frameTooLong(131_073), nil), (.itemOverrun(item: 1, length: 257), nil), (.itemOverrun(item: 1, length: 3), nil),
      (.itemOverrun(item: 3, length: 0x0500), nil), (.incomplete, nil), (.unknownCommand(7), nil),
    ] as [(ParseError.Problem, Int?)])
  func swapped(problem: ParseError.Problem, length: Int?) {
    let text = problem.description
    #expect(text.contains("little-endian?") == (length != nil), "\(text)")
    if let length { #expect(text.hasSuffix("(little-endian? \(length) with its bytes swapped)"), "\(text)") }
  }

  /// The lengths that are usual, from the shortest to the longest, and how a problem with one is made.
  private static let usual: [(ClosedRange<Int>, @Sendable (Int) -> ParseError.Problem)] = [
    (5...4_608, { .frameTooLong(Int(UInt32($0).byteSwapped)) }),
    (1...100, { .tokenTooLong(Int(UInt16($0).byteSwapped)) }),
    (2...4_096, { .payloadTooLong(Int(UInt16($0).byteSwapped)) }),
    (1...100, { .itemOverrun(item: 1, length: Int(UInt16($0).byteSwapped)) }),
    (2...4_096, { .itemOverrun(item: 2, length: Int(UInt16($0).byteSwapped)) }),
    (4...4, { .itemOverrun(item: 3, length: Int(UInt16($0).byteSwapped)) }),
    (4...4, { .itemOverrun(item: 4, length: Int(UInt16($0).byteSwapped)) }),
    (1...1, { .itemOverrun(item: 5, length: Int(UInt16($0).byteSwapped)) }),
  ]

  @Test("Usual lengths end where the documents and known clients end") func limits() {
    for (lengths, problem) in Self.usual {
      func isSwapped(_ length: Int) -> Bool { problem(length).description.contains("little-endian?") }
      #expect(isSwapped(lengths.lowerBound) && isSwapped(lengths.upperBound), "\(lengths)")
      #expect(
        !isSwapped(lengths.lowerBound - 1) && !isSwapped(lengths.upperBound + 1), "\(problem(lengths.upperBound))")
    }
  }
}
