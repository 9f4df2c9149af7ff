import Bytes

/// Files that are often given for captures and are none that is read here: what they are, and what helps.
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

  /// What a file is that begins with these bytes, as the end of a sentence; `nil` where that is not known.
  static func advice(_ bytes: RawSpan) -> String? { kinds.first { bytes.begins(with: Array($0.magic.utf8)) }?.advice }
}
