import Bytes
import Payload
import Testing

/// What the vectors leave open of what a device shows.
@Suite("Renderings")
struct RenderingTests {
  private func shown(
    _ payload: String, on system: SystemVersion = .iOS10, strings: [String: String] = [:],
    categories: [String: NotificationCategory] = [:]
  ) -> PayloadRendering {
    let bytes = Array(payload.utf8)
    return PayloadRendering(
      of: bytes.rawBytes, on: system, language: "en",
      resources: AppResources(strings: ["en": strings], categories: categories))
  }

  @Test(
    "A call for the extension that is not the number 1 is ignored, and 0 is none",
    arguments: [("1", true, false), ("1.0", true, false), ("0", false, false), ("true", false, true)]
      as [(
        String, Bool, Bool
      )])
  func mutable(value: String, isCalled: Bool, isIgnored: Bool) {
    let shown = shown(#"{"aps":{"alert":"x","mutable-content":"# + value + "}}")
    #expect(shown.mayBeChanged == isCalled)
    #expect(shown.notes == (isIgnored ? [.mutableIgnored] : []))
  }

  @Test("The alert of another type is ignored, and values of another type in it are absent")
  func types() {
    for alert in ["null", "[]", "5", "true"] {
      #expect(shown(#"{"aps":{"alert":"# + alert + "}}").notes == [.alertIgnored, .nothingShown])
    }
    let strange = shown(#"{"aps":{"alert":{"title":1,"subtitle":[],"body":"b","loc-key":2,"action-loc-key":3}}}"#)
    #expect(strange.body == "b" && strange.title == nil && strange.subtitle == nil)
    #expect(strange.buttons.dialog == ["Close", "View"] && strange.notes.isEmpty)
    let empty = shown(#"{"aps":{"alert":{"body":"b","loc-key":"","title":"","title-loc-key":"","action-loc-key":""}}}"#)
    #expect(empty.body == "b" && empty.title == nil && empty.notes.isEmpty)
    #expect(empty.buttons.dialog == ["Close", "View"])
    let sound = shown(#"{"aps":{"sound":{"name":"a.caf"},"content-available":"1","thread-id":"t"}}"#, on: .iOS9)
    #expect(sound.sound == nil && !sound.wakesApp)
    #expect(sound.notes == [.backgroundUnsure, .nothingShown, .soundIgnored, .threadIgnored])
  }

  @Test("A subtitle needs a text above it, and an empty text does not count as one")
  func subtitle() {
    let alone = shown(#"{"aps":{"alert":{"subtitle":"s"},"badge":1}}"#)
    #expect(alone.subtitle == nil && alone.notes == [.subtitleIgnored])
    let below = shown(#"{"aps":{"alert":{"title":"t","subtitle":"s"}}}"#)
    #expect(below.subtitle == "s" && below.title == "t" && below.notes.isEmpty)
    let blank = shown(#"{"aps":{"alert":{"loc-key":"K"}}}"#, strings: ["K": ""])
    #expect(blank.body == nil && blank.buttons.dialog.isEmpty && blank.notes == [.nothingShown])
  }

  @Test("Arguments of any value are inserted as they are written, and what is no array has none")
  func arguments() {
    let format = ["K": "%@|%@|%3$@|%@"]
    let values = shown(#"{"aps":{"alert":{"loc-key":"K","loc-args":[1.50,null,true]}}}"#, strings: format)
    #expect(values.body == "1.50|null|true|true" && values.notes == [.argsNotStrings])
    let none = shown(#"{"aps":{"alert":{"loc-key":"K","loc-args":"x"}}}"#, strings: format)
    #expect(none.body == "%@|%@|%3$@|%@" && none.notes == [.argsTooFew])
  }

  @Test("The first four actions and the first two of a narrow place are shown")
  func actions() {
    let actions = (1...5).map { NotificationCategory.Action(id: "\($0)", title: "T\($0)") }
    let categories = [
      "ALL": NotificationCategory(actions: actions),
      "MINIMAL": NotificationCategory(actions: actions, minimal: ["5", "4", "3"]),
      "NONE": NotificationCategory(actions: actions, minimal: []),
    ]
    for (id, compact) in [("ALL", ["T1", "T2"]), ("MINIMAL", ["T5", "T4"]), ("NONE", [])] {
      for system in [SystemVersion.iOS8, .iOS9, .iOS10] {
        let buttons = shown(
          #"{"aps":{"alert":{"body":"x","action-loc-key":null},"category":"\#(id)"}}"#, on: system,
          categories: categories
        ).buttons
        #expect(buttons.dialog == ["Close", "Options"] && buttons.options == ["T1", "T2", "T3", "T4"])
        #expect(buttons.compact == compact)
      }
    }
  }

  @Test("The last of equal keys counts, and bytes around the text do not")
  func forms() {
    #expect(shown(#"{"aps":{"alert":"a"},"aps":{"alert":{"body":"b","body":"c"}}}"#).body == "c")
    #expect(shown("\u{feff}{\"aps\":{\"alert\":\"a\"}}\0\0").body == "a")
    let wide = Array("{\"aps\":{\"alert\":\"\u{e9}\"}}".utf16).flatMap { [UInt8($0 & 0xff), UInt8($0 >> 8)] }
    let resources = AppResources()
    #expect(PayloadRendering(of: wide.rawBytes, on: .iOS7, language: "en", resources: resources).body == "\u{e9}")
    #expect(shown(#"{"aps":{"alert":"\ud83c"}}"#).body == "\u{fffd}")
    #expect(shown(#"{"aps":7}"#).notes == [.invalid])
  }
}
