import Foundation
import TestSupport
import Testing

@Suite("render", .waiting)
struct RenderCommandTests {
  private struct Vector {
    var id: String
    var fields: [String: Any]
  }

  /// The cases that Tests/PayloadTests has, which the command has to answer as the library does.
  private func vectors() throws -> [Vector] {
    let file = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .appending(path: "PayloadTests/Vectors/payload-render.jsonl")
    return try String(contentsOf: file, encoding: .utf8).split(separator: "\n").map { line in
      let fields = try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
      return Vector(id: try #require(fields["id"] as? String), fields: fields)
    }
  }

  private func quoted(_ text: String) -> String {
    "\"" + text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"").replacing("\n", with: "\\n") + "\""
  }

  private func canonical(_ value: Any) throws -> String {
    String(decoding: try JSONSerialization.data(withJSONObject: [value], options: .sortedKeys), as: UTF8.self)
  }

  @Test("Every vector is rendered from files as it is expected")
  func rendersVectors() throws {
    let vectors = try vectors()
    #expect(vectors.count > 40)
    for vector in vectors {
      try Command.inFolder { command in
        let language = try #require(vector.fields["language"] as? String)
        let strings = try #require(vector.fields["strings"] as? [String: String])
        let folder = command.folder.appending(path: "App/\(language).lproj")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        // An earlier value of the same key does not count.
        let text = strings.sorted { $0.key < $1.key }.map {
          "/* \($0.key) */\n\(quoted($0.key)) = \"old\"; // old\n\(quoted($0.key)) = \(quoted($0.value));\n"
        }
        try command.write(Array(text.joined().utf8), "App/\(language).lproj/Localizable.strings")
        let categories = try #require(vector.fields["categories"] as? [String: Any])
        try command.write([UInt8](try JSONSerialization.data(withJSONObject: categories)), "categories.json")
        try command.write(Array(try #require(vector.fields["payload"] as? String).utf8), "payload.json")
        let ios = try #require(vector.fields["ios"] as? Int)
        let outcome = try command.run(
          "render", "payload.json", "--ios", "\(ios)", "--language", language, "--strings", "App", "--categories",
          "categories.json", "--format", "json", "--input", "payload")
        #expect(outcome.status == 0 && outcome.errors == "", "\(vector.id): \(outcome.errors)")
        let shown = try #require(
          try JSONSerialization.jsonObject(with: Data(outcome.output.utf8)) as? [String: Any], "\(vector.id)")
        let expected = try #require(vector.fields["expect"] as? [String: Any])
        for (key, value) in expected {
          #expect(try canonical(shown[key] ?? "absent") == canonical(value), "\(vector.id): \(key)")
        }
      }
    }
  }

  @Test("Text for people has what is shown, and notes with the rules' codes")
  func text() throws {
    try Command.inFolder { command in
      try command.write(
        Array(#"{"aps":{"alert":{"title":"Ferry","loc-key":"LATE"},"badge":0,"sound":"x.mp3"}}"#.utf8), "payload.json")
      let outcome = try command.run("render", "payload.json", "--ios", "9")
      #expect(
        outcome.lines == [
          "iOS 9, en", "  title      Ferry", "  body       LATE", "  buttons    [Close] [View]",
          "  badge      0 (cleared)", "  sound      default",
          "  note       key_missing: the table of the language lacks a key (loc_key_not_found)",
          "  note       sound_default: the sound is no name of a sound file, so the default is played (sound_file_name)",
          "  note       title_watch_and_center: the title is shown on a watch and in Notification Center only",
        ])
    }
  }

  @Test("Strings files may be UTF-16 with a byte order mark, have every escape, and be property lists")
  func encodings() throws {
    try Command.inFolder { command in
      try FileManager.default.createDirectory(
        at: command.folder.appending(path: "App/en.lproj"), withIntermediateDirectories: true)
      let strings = "/* a */ \"K\" = \"q\\\" b\\\\ n\\n t\\t r\\r u\\U00e9\";"
      let littleEndian: [UInt8] =
        [0xff, 0xfe] + strings.utf16.flatMap { [UInt8(truncatingIfNeeded: $0), UInt8($0 >> 8)] }
      let bigEndian: [UInt8] =
        [0xfe, 0xff] + strings.utf16.flatMap { [UInt8($0 >> 8), UInt8(truncatingIfNeeded: $0)] }
      let list = """
        <?xml version="1.0" encoding="UTF-8"?>
        <plist version="1.0"><dict><key>K</key><string>q" b\\ n&#10; t&#9; r&#13; u\u{e9}</string></dict></plist>
        """
      try command.write(Array(#"{"aps":{"alert":{"loc-key":"K"}}}"#.utf8), "payload.json")
      for bytes in [Array(strings.utf8), littleEndian, bigEndian, Array(list.utf8)] {
        try command.write(bytes, "App/en.lproj/Localizable.strings")
        let outcome = try command.run("render", "payload.json", "--strings", "App", "--format", "json")
        let shown = try JSONSerialization.jsonObject(with: Data(outcome.output.utf8)) as? [String: Any]
        #expect(shown?["body"] as? String == "q\" b\\ n\n t\t r\r u\u{e9}", "\(outcome.errors)")
      }
      try command.write(Array("\"K\" = ".utf8), "App/en.lproj/Localizable.strings")
      #expect(try command.run("render", "payload.json", "--strings", "App").status == 65)
    }
  }

  @Test("Records of a capture are rendered one by one")
  func records() throws {
    try Command.inFolder { command in
      try command.trace("plain-error.pcap")
      let shown = try command.shell(
        "\"$apnscope\" decode plain-error.pcap | \"$apnscope\" render - --ios 7 --format json | grep -c '\"line\"'")
      #expect(shown.output == "66\n")
      #expect(try command.run("render", "plain-error.pcap", "--ios", "11").status == 64)
    }
  }
}
