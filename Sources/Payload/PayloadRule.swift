/// The faults of a payload, its frame or its frequency; the raw values are the codes in records and reports.
///
/// In the order of their codes, which is the order of every list. Sources of the rules: Apple's *Local and Remote
/// Notification Programming Guide* of 2015-09-16 and what it refers to; see `explanation`.
public enum PayloadRule: String, Sendable, CaseIterable, Comparable {
  case alertJSONText = "alert_json_text"
  case alertNoText = "alert_no_text"
  case alertOnlyBody = "alert_only_body"
  case alertPriority5 = "alert_priority_5"
  case alertTitleOnly = "alert_title_only"
  case alertType = "alert_type"
  case alertValueType = "alert_value_type"
  case apsEmpty = "aps_empty"
  case apsMissing = "aps_missing"
  case apsNoEffect = "aps_no_effect"
  case apsNotDictionary = "aps_not_dictionary"
  case backgroundTooOften = "background_too_often"
  case backgroundWithBadgeOrSound = "background_with_badge_or_sound"
  case badgeType = "badge_type"
  case badgeValue = "badge_value"
  case categoryType = "category_type"
  case categoryWithoutAlert = "category_without_alert"
  case complicationAPSIgnored = "complication_aps_ignored"
  case contentAvailableValue = "content_available_value"
  case customNull = "custom_null"
  case expiration1970 = "expiration_1970"
  case expirationFar = "expiration_far"
  case expirationPast = "expiration_past"
  case expirationZero = "expiration_zero"
  case jsonControlCharacter = "json_control_character"
  case jsonDoubleEncoded = "json_double_encoded"
  case jsonDuplicateKey = "json_duplicate_key"
  case jsonLoneSurrogate = "json_lone_surrogate"
  case jsonMissingComma = "json_missing_comma"
  case jsonNotObject = "json_not_object"
  case jsonSingleQuotes = "json_single_quotes"
  case jsonSyntax = "json_syntax"
  case jsonTrailingComma = "json_trailing_comma"
  case jsonTruncated = "json_truncated"
  case keyMisplaced = "key_misplaced"
  case keyMisspelt = "key_misspelt"
  case keyTooNew = "key_too_new"
  case keyUnknown = "key_unknown"
  case locArgsTooFew = "loc_args_too_few"
  case locArgsTooMany = "loc_args_too_many"
  case locArgsType = "loc_args_type"
  case locArgsWithoutKey = "loc_args_without_key"
  case locFormatPlaceholder = "loc_format_placeholder"
  case locKeyAndText = "loc_key_and_text"
  case locKeyNotFound = "loc_key_not_found"
  case locKeyType = "loc_key_type"
  case mdmMissing = "mdm_missing"
  case mdmNotAlone = "mdm_not_alone"
  case mdmType = "mdm_type"
  case mutableContentValue = "mutable_content_value"
  case mutableWithoutAlert = "mutable_without_alert"
  case payloadBadUTF8 = "payload_bad_utf8"
  case payloadBOM = "payload_bom"
  case payloadEmpty = "payload_empty"
  case payloadNotMinified = "payload_not_minified"
  case payloadNulTerminated = "payload_nul_terminated"
  case payloadOver2048 = "payload_over_2048"
  case payloadOver256 = "payload_over_256"
  case payloadTooLarge = "payload_too_large"
  case payloadUTF16 = "payload_utf16"
  case priorityValue = "priority_value"
  case silentPriority10 = "silent_priority_10"
  case silentPriorityImplied = "silent_priority_implied"
  case soundFileName = "sound_file_name"
  case soundType = "sound_type"
  case textDoubleEscaped = "text_double_escaped"
  case textHTMLEntities = "text_html_entities"
  case textPrivateUse = "text_private_use"
  case threadIDType = "thread_id_type"
  case tokenConstant = "token_constant"
  case tokenHexText = "token_hex_text"
  case tokenLength = "token_length"
  case urlArgsMissing = "url_args_missing"
  case urlArgsType = "url_args_type"
  case voipAPSIgnored = "voip_aps_ignored"

  /// The consequence of breaking a rule.
  public enum Severity: String, Sendable, CaseIterable, Comparable {
    /// Works, but costs or risks something.
    case advice
    /// The user sees something other than intended.
    case warning
    /// The gateway or the device refuses or ignores the whole.
    case error

    public static func < (a: Self, b: Self) -> Bool { a.rank < b.rank }
    private var rank: Int { self == .advice ? 0 : self == .warning ? 1 : 2 }
  }

  /// The code of the rule, as in records and reports.
  public var code: String { rawValue }

  /// The consequence of breaking the rule.
  public var severity: Severity { Self.table[ordinal].severity }

  /// One sentence for people: the fault and its effect.
  public var explanation: String { Self.table[ordinal].sentence }

  /// Whether each key or text that breaks it gets a finding, instead of the first one only.
  var isToldEach: Bool {
    switch self {
    case .keyMisplaced, .keyMisspelt, .keyTooNew, .keyUnknown, .textDoubleEscaped, .textHTMLEntities, .textPrivateUse:
      true
    default: false
    }
  }

  /// Its place in `allCases`.
  @usableFromInline @inline(__always)
  var ordinal: Int {
    // Safe: an enumeration of fewer than 256 cases without values is one byte, the case's number.
    Int(unsafe unsafeBitCast(self, to: UInt8.self))
  }

  public static func < (a: Self, b: Self) -> Bool { a.ordinal < b.ordinal }
}
