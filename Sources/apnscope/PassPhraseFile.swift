import Bytes

/// A file whose first line is a pass phrase: on the command line it could be read by everybody.
enum PassPhraseFile {
  /// The first line without its end.
  static func read(_ path: String) throws -> [UInt8] {
    do {
      let bytes = try WholeFile.read(path, maximumLength: 65_536)
      return Array(bytes.prefix { $0 != 0x0a && $0 != 0x0d })
    } catch {
      complain("\(path): \(error)")
      throw ExitStatus.cannotOpen
    }
  }
}
