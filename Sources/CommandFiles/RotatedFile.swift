import Bytes
import FoundationEssentials
import Glibc

/// A file of lines that is continued in another one when it is full: what is full is renamed to `NAME.TIME`, as
/// `arrived.jsonl.20261127T170501Z`, and `NAME` begins anew with the first line.
package final class RotatedFile {
  /// How large files get, and how many full ones stay.
  package struct Limits: Sendable {
    /// Bytes above which a file is not continued.
    package var maximumBytes: Int
    /// The full files that stay, of those that were made here; `nil`: all.
    package var maximumFiles: Int?
    package init(maximumBytes: Int, maximumFiles: Int? = nil) {
      (self.maximumBytes, self.maximumFiles) = (maximumBytes, maximumFiles)
    }
  }

  private let path: String
  private let limits: Limits
  private let time: () -> Date
  private var file: OutputFile
  private var written = 0
  private var firstLine: [UInt8]?
  /// The full files that were made here and stay, the oldest first.
  private var full: [String] = []
  /// The latest name, without a number, and its number.
  private var latest = (name: "", number: 0)
  /// `errno` of the first failure; `EPIPE` when a reader has closed a pipe.
  private var failure: Int32?

  /// Opens the file; its content stays until something is written. Pipes and devices are never full.
  package init(_ path: String, _ limits: Limits, time: @escaping () -> Date = { Date() }) throws(FileFailure) {
    (self.path, self.limits, self.time) = (path, limits, time)
    guard let file = OutputFile(later: path) else { throw FileFailure(.writeFailed, path, code: errno) }
    self.file = file
  }

  /// Writes whole lines; `false` when nothing more can be written.
  package func write(_ lines: RawSpan) -> Bool {
    guard failure == nil else { return false }
    if firstLine == nil { firstLine = Self.firstLine(of: lines) }
    if written > 0, written + lines.byteCount > limits.maximumBytes, file.isRegular, !rotate() { return false }
    written += lines.byteCount
    return file.write(lines)
  }

  private static func firstLine(of lines: RawSpan) -> [UInt8] {
    let bytes = Array(copying: lines)
    return Array(bytes.prefix { $0 != UInt8(ascii: "\n") } + [UInt8(ascii: "\n")])
  }

  private func rotate() -> Bool {
    let name = freeName()
    guard unsafe rename(path, name) == 0, let next = OutputFile(later: path) else {
      failure = errno
      return false
    }
    full.append(name)
    if let most = limits.maximumFiles, full.count > most { _ = unsafe unlink(full.removeFirst()) }
    (file, written) = (next, 0)
    guard let firstLine else { return true }
    written = firstLine.count
    return file.write(firstLine.rawBytes)
  }

  /// A name that no file has or had.
  private func freeName() -> String {
    let style = Date.ISO8601FormatStyle(dateSeparator: .omitted, timeSeparator: .omitted)
    let name = "\(path).\(time().formatted(style))"
    // Of one second: numbers are not used again, so that they tell the order.
    var number = latest.name == name ? latest.number + 1 : 1
    func numbered() -> String { number == 1 ? name : "\(name)-\(number)" }
    while Paths.exists(numbered()) { number += 1 }
    latest = (name, number)
    return numbered()
  }

  /// Throws when something could not be written, `readerGone` when a pipe was closed.
  package func check() throws(FileFailure) {
    file.begin()
    if let failure = failure ?? file.failure { throw FileFailure(writing: path, code: failure) }
  }
}
