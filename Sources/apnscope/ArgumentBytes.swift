import Bytes
import Glibc

/// The command line, if file names in it are not valid UTF-8, which a string cannot hold.
///
/// A file with such a name is opened, without being read, and replaced by `/proc/self/fd/7` in the arguments; messages
/// and records show its name with the invalid bytes as `\xff`. Names of files that do not exist yet are repaired, as
/// usual.
enum ArgumentBytes {
  /// Linux's O_PATH, which is not part of POSIX.
  private static let onlyPath: Int32 = 0o10_000_000

  private static let all: (arguments: [String], names: [String: String]) = {
    var (arguments, names) = ([String](), [String: String]())
    for index in 1..<max(1, Int(CommandLine.argc)) {
      guard let argument = unsafe CommandLine.unsafeArgv[index] else { continue }
      if let text = unsafe String(validatingCString: argument) {
        arguments.append(text)
        continue
      }
      // The descriptor stays open as long as the program runs, because the path below refers to it.
      let descriptor = unsafe open(argument, onlyPath | O_CLOEXEC)
      if descriptor >= 0 {
        let path = "/proc/self/fd/\(descriptor)"
        // Safe: the argument ends with its zero.
        unsafe names[path] = shown(Array(UnsafeRawBufferPointer(start: argument, count: strlen(argument))))
        arguments.append(path)
      } else {
        unsafe arguments.append(String(cString: argument))
      }
    }
    return (arguments, names)
  }()

  static var arguments: [String] { all.arguments }

  /// Names as messages show them.
  static var shownNames: [String] { Array(all.names.values) }

  /// The text with the names that were typed.
  static func named(_ text: String) -> String {
    // The longest first: one path may be the beginning of another.
    let path = all.names.keys.filter { text.hasPrefix($0) }.max { $0.count < $1.count }
    guard let path, let name = all.names[path] else { return text }
    return name + text.dropFirst(path.count)
  }

  /// UTF-8 as it is, other bytes in hexadecimal.
  private static func shown(_ bytes: [UInt8]) -> String {
    var text = ""
    var start = 0
    while start < bytes.count {
      let length = (1...4).first { length in
        start + length <= bytes.count && String(validating: bytes[start..<start + length], as: UTF8.self) != nil
      }
      let end = start + (length ?? 1)
      if length != nil {
        text += String(decoding: bytes[start..<end], as: UTF8.self)
      } else {
        let digits = String(bytes[start], radix: 16)
        text += "\\x" + (digits.count < 2 ? "0" : "") + digits
      }
      start = end
    }
    return text
  }
}
