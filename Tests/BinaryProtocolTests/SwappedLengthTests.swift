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
}
