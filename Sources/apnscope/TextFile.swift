import Bytes
import Glibc

/// A small file of text that is read as a whole.
enum TextFile {
  struct Problem: Error { var text: String }

  static func read(_ path: String, maximumLength: Int) -> Result<String, Problem> {
    let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return .failure(Problem(text: SystemError.text(errno))) }
    defer { close(descriptor) }
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 1 << 16)
    while true {
      let count = unsafe Glibc.read(descriptor, &buffer, buffer.count)
      if count < 0 {
        if errno == EINTR { continue }
        return .failure(Problem(text: SystemError.text(errno)))
      }
      if count == 0 { break }
      bytes += buffer[..<count]
      if bytes.count > maximumLength { return .failure(Problem(text: "is longer than \(maximumLength) bytes")) }
    }
    guard let text = String(validating: bytes, as: UTF8.self) else { return .failure(Problem(text: "is not UTF-8")) }
    return .success(text)
  }
}
