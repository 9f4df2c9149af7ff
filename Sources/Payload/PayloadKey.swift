import Bytes

/// The keys that systems know in `aps` and in `alert`.
enum PayloadKey: UInt8, CaseIterable {
  case alert = 1
  case badge, sound, contentAvailable, category, mutableContent, threadID, urlArgs, targetContentID
  case interruptionLevel, relevanceScore
  case body, title, subtitle, locKey, locArgs, titleLocKey, titleLocArgs, subtitleLocKey, subtitleLocArgs
  case actionLocKey, launchImage, action, summaryArg, summaryArgCount

  enum Level { case aps, alert }

  var level: Level { rawValue <= Self.relevanceScore.rawValue ? .aps : .alert }

  /// The year from which systems know it.
  var year: Int { Self.table[Int(rawValue) - 1].year }
  var name: StaticString { Self.table[Int(rawValue) - 1].name }

  /// Beside `aps` it is an easy mistake rather than custom data.
  var isTakenForCustomData: Bool { rawValue <= Self.threadID.rawValue }

  private static let table: [(key: PayloadKey, name: StaticString, year: Int)] = [
    (.alert, "alert", 2009), (.badge, "badge", 2009), (.sound, "sound", 2009),
    (.contentAvailable, "content-available", 2011), (.category, "category", 2014),
    (.mutableContent, "mutable-content", 2016), (.threadID, "thread-id", 2016), (.urlArgs, "url-args", 2013),
    (.targetContentID, "target-content-id", 2019), (.interruptionLevel, "interruption-level", 2021),
    (.relevanceScore, "relevance-score", 2021),
    (.body, "body", 2009), (.title, "title", 2015), (.subtitle, "subtitle", 2016), (.locKey, "loc-key", 2009),
    (.locArgs, "loc-args", 2009), (.titleLocKey, "title-loc-key", 2015), (.titleLocArgs, "title-loc-args", 2015),
    (.subtitleLocKey, "subtitle-loc-key", 2016), (.subtitleLocArgs, "subtitle-loc-args", 2016),
    (.actionLocKey, "action-loc-key", 2009), (.launchImage, "launch-image", 2010), (.action, "action", 2013),
    (.summaryArg, "summary-arg", 2018), (.summaryArgCount, "summary-arg-count", 2018),
  ]

  /// The key whose name is exactly these bytes.
  @inline(__always)
  static func named(_ text: RawSpan, _ contents: Range<Int>) -> PayloadKey? {
    let start = contents.lowerBound
    @inline(__always)
    func holds(_ name: StaticString) -> Bool { text.holds(name, at: start) }
    switch contents.count {
    case 4: return holds("body") ? .body : nil
    case 5:
      switch text.byte(at: start) {
      case UInt8(ascii: "a"): return holds("alert") ? .alert : nil
      case UInt8(ascii: "b"): return holds("badge") ? .badge : nil
      case UInt8(ascii: "s"): return holds("sound") ? .sound : nil
      case UInt8(ascii: "t"): return holds("title") ? .title : nil
      default: return nil
      }
    case 6: return holds("action") ? .action : nil
    case 7: return holds("loc-key") ? .locKey : nil
    case 8:
      switch text.byte(at: start) {
      case UInt8(ascii: "c"): return holds("category") ? .category : nil
      case UInt8(ascii: "l"): return holds("loc-args") ? .locArgs : nil
      case UInt8(ascii: "s"): return holds("subtitle") ? .subtitle : nil
      case UInt8(ascii: "u"): return holds("url-args") ? .urlArgs : nil
      default: return nil
      }
    case 9: return holds("thread-id") ? .threadID : nil
    case 11: return holds("summary-arg") ? .summaryArg : nil
    case 12: return holds("launch-image") ? .launchImage : nil
    case 13: return holds("title-loc-key") ? .titleLocKey : nil
    case 14:
      return holds("title-loc-args") ? .titleLocArgs : holds("action-loc-key") ? .actionLocKey : nil
    case 15:
      return holds("mutable-content") ? .mutableContent : holds("relevance-score") ? .relevanceScore : nil
    case 16: return holds("subtitle-loc-key") ? .subtitleLocKey : nil
    case 17:
      return holds("content-available")
        ? .contentAvailable
        : holds("subtitle-loc-args")
          ? .subtitleLocArgs
          : holds("target-content-id") ? .targetContentID : holds("summary-arg-count") ? .summaryArgCount : nil
    case 18: return holds("interruption-level") ? .interruptionLevel : nil
    default: return nil
    }
  }
}

/// The members of `aps` and `alert` by key: the index of each value in the tape, or 0.
struct PayloadMembers {
  private var values = InlineArray<32, UInt32>(repeating: 0)

  subscript(key: PayloadKey) -> Int? {
    @inline(__always) get {
      let value = values[Int(key.rawValue)]
      return value == 0 ? nil : Int(value)
    }
  }

  @inline(__always)
  mutating func set(_ key: PayloadKey, to value: Int) {
    values[Int(key.rawValue)] = UInt32(truncatingIfNeeded: value)
  }
}
