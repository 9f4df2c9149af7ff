import Bytes
import CFuzzing
import Glibc

@testable import TLSDecryption

/// The first byte chooses how many lines are read and how many secrets are wanted, the rest is a key log: read from
/// memory, from a file and from a pipe.
@Sendable func fuzzKeyLog(_ bytes: RawSpan) {
  var script = Script(bytes)
  let choice = script.byte()
  let maximumLines = choice & 1 != 0 ? 3 : 100_000
  let limit = choice & 2 != 0 ? 2 : 100_000
  let contents = Array(copying: script.rest())
  let log = KeyLog(contents, maximumLines: maximumLines)
  let lines = acceptedLines(contents)
  law(log.count <= maximumLines, "\(log.count) lines indexed")
  if !log.isCut { law(log.count >= lines.count, "\(log.count) lines indexed of \(lines.count)") }
  check(log, lines, limit)
  withFile(contents.rawBytes) { compare(log, lines, $0, maximumLines, limit) }
  if contents.count <= 1 << 15 { withPipe(contents) { compare(log, lines, $0, maximumLines, limit) } }
}

/// What `KeyLogLine` takes of the text, line by line.
private func acceptedLines(_ contents: [UInt8]) -> [KeyLogLine] {
  var lines: [KeyLogLine] = []
  for text in contents.split(separator: 0x0a, omittingEmptySubsequences: false) {
    guard let line = KeyLogLine(parsing: Array(text).span) else { continue }
    law(KeyLogLineStart(Array(text).span)?.keyLength == line.key.count, "the start of a line tells another key")
    let again = KeyLogLine(parsing: Array(line.text.utf8.dropLast()).span)
    law(line.text.hasSuffix("\n") && again == line, "a line's text is another line: \(line.text)")
    // Longer lines are over the limit.
    if text.count <= 1_024 { lines.append(line) }
  }
  return lines
}

private func compare(_ memory: KeyLog, _ lines: [KeyLogLine], _ path: String, _ maximumLines: Int, _ limit: Int) {
  do {
    let file = try KeyLog(contentsOf: path, maximumLength: 1 << 20, maximumLines: maximumLines)
    law(
      file.count == memory.count && file.isCut == memory.isCut,
      "\(file.count) lines in a file, \(memory.count) in memory")
    check(file, lines, limit)
  } catch {
    law(false, "a key log cannot be read: \(error)")
  }
}

/// Every line is found by its key, the last one first.
private func check(_ log: KeyLog, _ lines: [KeyLogLine], _ limit: Int) {
  for line in lines.prefix(200) {
    let found = log.secrets(line.label, for: line.key, limit: limit)
    law(
      found.count <= limit && Set(found).count == found.count,
      "\(found.count) secrets, of them \(Set(found).count) different")
    var wanted: [[UInt8]] = []
    for other in lines.reversed() where other.label == line.label && other.key == line.key {
      if !wanted.contains(other.secret) { wanted.append(other.secret) }
    }
    if log.isCut {
      law(found.allSatisfy(wanted.contains), "a secret of no line")
    } else {
      law(found == Array(wanted.prefix(limit)), "\(found.count) secrets of \(wanted.count) for \(line.label.text)")
    }
  }
  var visited = 0
  for label in KeyLogLabel.allCases {
    log.forEach(label) {
      law($0.label == label && lines.contains($0), "a line that is not in the log")
      visited += 1
      return true
    }
  }
  law(log.isCut || visited == lines.count, "\(visited) of \(lines.count) lines visited")
}

/// Puts bytes into a pipe, which holds 64 KiB.
private func withPipe(_ bytes: [UInt8], _ body: (String) -> Void) {
  var ends: [Int32] = [0, 0]
  guard pipe(&ends) == 0, write(ends[1], bytes, bytes.count) == bytes.count else {
    fatalError("no pipe: errno \(errno)")
  }
  close(ends[1])
  body("/proc/self/fd/\(ends[0])")
  close(ends[0])
}

/// Comments, damage, and lines of every label.
func keyLogOfEveryLabel() -> [UInt8] {
  var text = "# SSL/TLS secrets log file\r\n\nEXPORTER_SECRET 00 11\nCLIENT_RANDOM 0011\n"
  for label in KeyLogLabel.allCases {
    let keyLength = label == .rsa ? 8 : 32
    let key = (0..<keyLength).map { UInt8($0) &* 7 &+ label.rawValue }
    let secret = [UInt8](repeating: label.rawValue, count: label.rawValue <= 4 ? 48 : 32)
    text += KeyLogLine(label, key: key, secret: secret).text
    text += "  " + KeyLogLine(label, key: key, secret: secret.map { $0 ^ 255 }).text.dropLast() + " \r\n"
  }
  return Array(text.utf8)
}
