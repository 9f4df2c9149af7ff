/// Severity and text of every rule.
extension PayloadRule {
  typealias Row = (rule: PayloadRule, severity: Severity, sentence: String)

  /// One row per rule, in the order of `allCases`.
  static let table: [Row] = [
    (.alertJSONText, .warning, "The text of the alert is a JSON object, so the user sees braces."),
    (.alertNoText, .warning, "The alert has no text to show."),
    (
      .alertOnlyBody, .advice,
      "The alert is a dictionary with nothing but a body, where Apple's guide prefers a string."
    ),
    (.alertPriority5, .advice, "An alert with priority 5 may come late."),
    (.alertTitleOnly, .advice, "The alert has a title and no body, and phones before iOS 10 hardly show titles."),
    (.alertType, .warning, "The alert is neither a string nor a dictionary."),
    (.alertValueType, .warning, "A text of the alert is not a string."),
    (.apsEmpty, .warning, "The aps dictionary is empty, so the system does nothing."),
    (.apsMissing, .error, "The payload has no aps dictionary, so the system does nothing."),
    (.apsNoEffect, .warning, "Nothing in the aps dictionary has an effect."),
    (.apsNotDictionary, .error, "The value of aps is not a dictionary."),
    (.backgroundTooOften, .warning, "A token gets more background pushes than a device lets through."),
    (.backgroundWithBadgeOrSound, .advice, "A push that wakes the app has a badge or sound, so it is not silent."),
    (.badgeType, .warning, "The badge is not a number."),
    (.badgeValue, .warning, "The badge is negative or not a whole number."),
    (.categoryType, .warning, "The category is not a string."),
    (.categoryWithoutAlert, .warning, "There is a category, but no alert that could have its buttons."),
    (
      .complicationAPSIgnored, .advice,
      "The system shows no alert, badge or sound of a push for a complication; only the app gets it."
    ),
    (.contentAvailableValue, .warning, "The value of content-available is not the number 1, so the app may not wake."),
    (.customNull, .advice, "Custom data holds null, which apps have to expect."),
    (.expiration1970, .warning, "The expiration date lies before 2001: a duration stands where a date belongs."),
    (.expirationFar, .advice, "The push expires more than a year after sending, which is no real bound."),
    (.expirationPast, .warning, "The push had expired when it was sent."),
    (.expirationZero, .advice, "The push is not stored, so a device that is offline never gets it."),
    (.jsonControlCharacter, .error, "A control character stands in a string and is not escaped."),
    (.jsonDoubleEncoded, .error, "A JSON object was encoded as a string and then once more."),
    (.jsonDuplicateKey, .warning, "An object has a key twice, and systems differ in which one they take."),
    (.jsonLoneSurrogate, .warning, "A \\u escape is half a surrogate pair, so a character was cut in two."),
    (.jsonMissingComma, .error, "A comma is missing between two values."),
    (.jsonNotObject, .error, "The payload is JSON, but no object."),
    (.jsonSingleQuotes, .error, "A key or value has single quotes, and JSON has double ones."),
    (.jsonSyntax, .error, "The payload is not valid JSON."),
    (.jsonTrailingComma, .error, "A comma is followed by a closing bracket."),
    (.jsonTruncated, .error, "The payload ends before its JSON text does."),
    (.keyMisplaced, .warning, "A known key stands in a dictionary where it is ignored."),
    (.keyMisspelt, .warning, "A key is ignored that resembles a known one."),
    (.keyTooNew, .advice, "A key is younger than the time of sending, so systems of the time ignore it."),
    (.keyUnknown, .advice, "A key in aps or alert is not known; custom data belongs beside aps."),
    (.locArgsTooFew, .warning, "The localized format needs more arguments than there are."),
    (.locArgsTooMany, .advice, "The localized format uses fewer arguments than there are."),
    (.locArgsType, .warning, "Localization arguments are not an array of strings."),
    (.locArgsWithoutKey, .warning, "There are localization arguments, but no key that uses them."),
    (
      .locFormatPlaceholder, .warning,
      "The localized format has placeholders that no push fills, or mixes those with and without a position."
    ),
    (
      .locKeyAndText, .advice,
      "A text and its localization key are both given, and reports differ on which one is shown."
    ),
    (.locKeyNotFound, .warning, "A localization key is not in the table of strings."),
    (.locKeyType, .warning, "A localization key is not a string."),
    (.mdmMissing, .warning, "The topic is of device management, and the payload has no mdm."),
    (.mdmNotAlone, .warning, "A payload of device management has other keys beside mdm."),
    (.mdmType, .warning, "The value of mdm is not a string with text, so no device takes the push."),
    (
      .mutableContentValue, .warning,
      "The value of mutable-content is not the number 1, so the extension may not be called."
    ),
    (.mutableWithoutAlert, .warning, "The extension is called for visible alerts only, and there is none."),
    (.payloadBadUTF8, .error, "The payload is not valid UTF-8."),
    (.payloadBOM, .warning, "The payload begins with a byte order mark, which JSON has no place for."),
    (.payloadEmpty, .error, "The payload has no bytes, which the gateway answers with status 4."),
    (.payloadNotMinified, .advice, "White space outside strings takes up room in the payload."),
    (.payloadNulTerminated, .error, "The payload ends in 00 bytes, such as the terminator of a C string."),
    (.payloadOver2048, .warning, "The payload is longer than 2,048 bytes, which only a VoIP topic may be."),
    (.payloadOver256, .warning, "The payload is longer than 256 bytes, which may have been the limit."),
    (
      .payloadTooLarge, .error,
      "The payload is longer than the limit of its time and topic, which the gateway answers with status 7."
    ),
    (.payloadUTF16, .warning, "The payload is UTF-16 or UTF-32, and the gateway may not take it."),
    (.priorityValue, .warning, "The priority is neither 5 nor 10."),
    (.silentPriority10, .error, "A silent push has priority 10, which Apple's guide calls an error."),
    (.silentPriorityImplied, .warning, "A silent push has no priority of its own, so it counts as 10 or may do so."),
    (.soundFileName, .warning, "The sound is neither \"default\" nor the name of an .aiff, .aif, .wav or .caf file."),
    (.soundType, .warning, "The sound is not a string."),
    (.textDoubleEscaped, .warning, "A text was escaped twice, so the user sees the escape and not the character."),
    (.textHTMLEntities, .warning, "A text has HTML entities, and the user sees them as they are."),
    (.textPrivateUse, .warning, "A text has emoji as private use characters, which systems since iOS 5 show as boxes."),
    (.threadIDType, .warning, "The thread identifier is not a string."),
    (.tokenConstant, .error, "All bytes of the device token are equal: it is a placeholder."),
    (.tokenHexText, .error, "The device token is hexadecimal text, and the wire takes bytes."),
    (.tokenLength, .error, "The device token has a length that no token has."),
    (
      .urlArgsMissing, .error,
      "A push for a web site has no url-args, which have to be an array, an empty one at least."
    ),
    (.urlArgsType, .warning, "The arguments of the address are not an array of strings."),
    (.voipAPSIgnored, .advice, "The system shows no alert, badge or sound of a VoIP push; only the app gets it."),
  ]
}
