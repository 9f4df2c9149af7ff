import Bytes
import Glibc

/// A file of devices: one token per line, in hexadecimal digits of either case, and its state.
///
///     # the tokens of the last campaign
///     740f4707bebcf74f9b7c25d48e3358945f6aa01da5ddb387462c7eaf61bb78ad
///     0f744707bebcf74f9b7c25d48e3358945f6aa01da5ddb387462c7eaf61bb78ad uninstalled   # since May
///
/// A token without a word is active.
extension DevicePopulation {
  /// Longest token in bytes: the maximum of a frame.
  private static let maximumTokenLength = 65_535
  /// Longest line in bytes: such a token, and some words.
  private static let maximumLineLength = 2 * maximumTokenLength + 1_024
  private static let blockLength = 1 << 18

  /// Reads a list of devices; all other tokens are unknown. A token may be listed again if the word is the same.
  ///
  /// - Parameters:
  ///   - path: a file, or a pipe.
  ///   - maximumTokens: the most tokens in a list; each needs about 100 bytes of memory.
  /// - Throws: `.cannotRead`, `.badLine`, `.tooManyTokens`, each with the file's name and the line.
  public init(contentsOf path: String, maximumTokens: Int = 10_000_000) throws(DevicePopulationError) {
    let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw DevicePopulationError(.cannotRead, "\(path): \(SystemError.text(errno))") }
    defer { close(descriptor) }
    var list = List(path: path, maximumTokens: maximumTokens)
    // A block, and before it the beginning of a line that the last block did not end.
    var buffer = [UInt8](repeating: 0, count: Self.maximumLineLength + Self.blockLength)
    var rest = 0
    while true {
      // Safe: `read` writes at most a block, for which there is space after the rest.
      let count = unsafe buffer.withUnsafeMutableBytes {
        unsafe read(descriptor, $0.baseAddress.map { unsafe $0 + rest }, Self.blockLength)
      }
      if count < 0 {
        if errno == EINTR { continue }
        throw DevicePopulationError(.cannotRead, "\(path): \(SystemError.text(errno))")
      }
      let end = rest + count
      var start = 0
      while let lineEnd = buffer[start..<end].firstIndex(of: UInt8(ascii: "\n")) {
        try list.add(buffer[start..<lineEnd])
        start = lineEnd + 1
      }
      if count == 0 {
        if start < end { try list.add(buffer[start..<end]) }
        break
      }
      rest = end - start
      guard rest <= Self.maximumLineLength else { throw list.bad("the line is too long for a token") }
      for place in 0..<rest { buffer[place] = buffer[start + place] }
    }
    self.init(tokens: list.tokens)
  }

  private struct List {
    let path: String
    let maximumTokens: Int
    private(set) var tokens: [TokenKey: Device] = [:]
    /// Lines that have been added.
    private var line = 0

    init(path: String, maximumTokens: Int) {
      self.path = path
      self.maximumTokens = maximumTokens
    }

    mutating func add(_ text: ArraySlice<UInt8>) throws(DevicePopulationError) {
      let words = text.prefix { $0 != UInt8(ascii: "#") }.split { $0 == 0x20 || (0x09...0x0d).contains($0) }
      guard let digits = words.first else {
        line += 1
        return
      }
      let token = try bytes(digits)
      var device = Device.active
      if words.count > 1 {
        guard let named = Device(rawValue: String(decoding: words[1], as: UTF8.self)) else {
          throw bad("unknown state \(Self.quoted(words[1])); expected active, offline, uninstalled or unknown")
        }
        device = named
      }
      if words.count > 2 { throw bad("unexpected \(Self.quoted(words[2])) after token and state") }
      let key = TokenKey(token.rawBytes)
      if let listed = tokens[key] {
        guard listed == device else { throw bad("the token is already listed as \(listed.rawValue)") }
      } else {
        guard tokens.count < maximumTokens else {
          throw DevicePopulationError(
            .tooManyTokens(line: line + 1), "\(path):\(line + 1): more than \(maximumTokens) tokens")
        }
        tokens[key] = device
      }
      line += 1
    }

    private func bytes(_ digits: ArraySlice<UInt8>) throws(DevicePopulationError) -> [UInt8] {
      guard digits.count.isMultiple(of: 2) else { throw bad("the token has an odd number of digits") }
      guard digits.count <= 2 * maximumTokenLength else { throw bad("the token exceeds 65535 bytes") }
      var token: [UInt8] = []
      token.reserveCapacity(digits.count / 2)
      var high: UInt8?
      for digit in digits {
        let value: UInt8
        switch digit {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): value = digit - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): value = digit - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): value = digit - UInt8(ascii: "A") + 10
        default: throw bad("\(Self.quoted(digits)) is not a token in hexadecimal digits")
        }
        if let first = high {
          token.append(first << 4 | value)
          high = nil
        } else {
          high = value
        }
      }
      return token
    }

    /// An error in the line that comes next.
    func bad(_ problem: String) -> DevicePopulationError {
      DevicePopulationError(.badLine(line + 1), "\(path):\(line + 1): \(problem)")
    }

    /// A word for a message: not all of it, and without what would disturb a terminal.
    private static func quoted(_ word: ArraySlice<UInt8>) -> String {
      let visible = word.prefix(24).map { (0x20...0x7e).contains($0) ? $0 : UInt8(ascii: "?") }
      return "'\(String(decoding: visible, as: UTF8.self))\(word.count > 24 ? "…" : "")'"
    }
  }
}
