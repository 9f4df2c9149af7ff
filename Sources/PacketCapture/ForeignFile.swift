import Bytes

/// Formats that are often mistaken for captures and cannot be read: their names, and how to convert them.
enum ForeignFile {
  private static let kinds: [(magic: String, advice: String)] = [
    ("GMBU", "is a capture of Microsoft Network Monitor; 'editcap -F pcapng IN OUT' makes one of it that can be read"),
    (
      "RTSS", "is a capture of Microsoft Network Monitor 1; 'editcap -F pcapng IN OUT' makes one of it that can be read"
    ),
    ("XCP\0", "is a NetXray capture; 'editcap -F pcapng IN OUT' makes one of it that can be read"),
    ("TRSNIFF data", "is a Sniffer capture; 'editcap -F pcapng IN OUT' makes one of it that can be read"),
    ("iptrace ", "is a capture of iptrace; 'editcap -F pcapng IN OUT' makes one of it that can be read"),
    ("Rar!\u{1a}", "is a RAR archive; unpack it first"),
    (
      "version https://git-lfs.github.com/spec/",
      "is a pointer of Git LFS, not the file itself; 'git lfs pull' fetches it"
    ),
    ("<!DOCTYPE html", "is an HTML page, perhaps one about the file; download the file itself"),
    ("<!doctype html", "is an HTML page, perhaps one about the file; download the file itself"),
    ("<html", "is an HTML page, perhaps one about the file; download the file itself"),
  ]

  /// A description of the file that begins with these bytes, as the end of a sentence; `nil` if the format is unknown.
  static func advice(_ bytes: RawSpan) -> String? {
    if let kind = kinds.first(where: { bytes.begins(with: Array($0.magic.utf8)) }) { return kind.advice }
    guard let text = PastedText.utf8(bytes.extracting(0..<min(bytes.byteCount, 1 << 16))) else { return nil }
    var advice: String?
    var lines = 0
    PastedText.eachLine(text) { line in
      lines += 1
      let line = String(decoding: line, as: UTF8.self)
      if line.hasPrefix("Follow: "), ["ascii", "ebcdic", "utf-8"].contains(where: { line.hasSuffix(",\($0)") }) {
        advice = "is text of tshark's follow in which bytes are missing; '-z follow,tcp,raw,0' shows all of them"
      } else if line.contains(" IP"), line.contains(" > "), line.contains(": Flags [") {
        advice = "is text of tcpdump without the packets; 'tcpdump -w FILE' keeps them, 'tcpdump -X' shows them"
      }
      return advice == nil && lines < 100
    }
    return advice
  }
}
