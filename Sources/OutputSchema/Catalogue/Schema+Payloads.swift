extension Schema {
  /// The lines of `apnscope lint --format json`.
  public static let judgements = Schema(
    "judgements", title: "Judgements of payloads", form: .lines,
    text: [
      """
      `apnscope lint --format json` writes one JSON object a line for each payload: its kind, the rules that it breaks, \
      and where.
      """
    ],
    root: .object([
      Field("file", .text, "Name of the input.", when: "several are judged"), line,
      Field("payload_length", .integer, "Length of the payload.", unit: .bytes),
      Field("kind", .payloadKind, "The purpose of the push."),
      Field("lint", .array(.payloadRule), "Rules that the payload or its frame breaks, sorted."),
      Field(
        "findings", .array(.object(finding)),
        "The same with places, sorted by place; one for each key or text that a rule is about."),
    ]),
    example: #"""
      {"payload_length":20,"kind":"badge_only","lint":["badge_value"],"findings":[{"code":"badge_value",\#
      "severity":"warning","offset":16,"line":1,"column":17,"message":"The badge is negative or not a whole number."}]}
      """#)

  /// The lines of `apnscope render --format json`.
  public static let renderings = Schema(
    "renderings", title: "Renderings of payloads", form: .lines,
    text: [
      """
      `apnscope render --format json` writes one JSON object a line for each payload: what a user would have seen of it \
      on a device whose app is not in the foreground and may use alerts, badges and sounds.
      """
    ],
    root: .object([
      line, Field("ios", .integer, "The system; 8 is 8.2 and later."),
      Field("language", .text, "Language of the device."),
      Field("title", shown, "The title; null when none is shown."),
      Field("subtitle", shown, "The subtitle; null when none is shown."),
      Field("body", shown, "The text with its arguments; null when none is shown."),
      Field(
        "buttons",
        .object([
          Field("dialog", .array(.text), "Buttons of a dialog; empty when there is no text."),
          Field("options", .array(.text), "Titles of the category's actions, at most four."),
          Field("compact", .array(.text), "Those of the lock screen and of banners, at most two."),
        ]), "Buttons by place. Close, View, Options and OK are names: a device shows them in its language."),
      Field("badge", .either([.integer, .null]), "Number on the icon, 0 to clear it; null when it stays as it is."),
      Field("sound", shown, "`default` or the name of a file; null when none is played."),
      Field("background", .boolean, "Whether the app wakes in the background."),
      Field("mutable", .boolean, "Whether the app's extension may change the texts before they are shown."),
      Field("notes", .array(note), "What is not shown, or not as it was sent; sorted."),
      Field(
        "rules", .array(.text), "Codes of the rules, as in `lint` of records, that the payload breaks with those notes."
      ),
    ]),
    example: #"""
      {"ios":9,"language":"en","title":null,"subtitle":null,"body":"Low tide","buttons":{"dialog":["Close","View"],\#
      "options":[],"compact":[]},"badge":null,"sound":"default","background":false,"mutable":false,\#
      "notes":["sound_default"],"rules":["sound_file_name"]}
      """#)

  private static let line = Field(
    "line", .integer, "Line of the input, from 1.", when: "the input has a payload or record a line")

  private static let shown: Shape = .either([.text, .null])

  private static let finding: [Field] = [
    Field("code", .text, "Code of the rule, one of those in `lint`."),
    Field("severity", .payloadSeverity, "How much it matters."),
    Field(
      "offset", .integer, "First byte of the payload that breaks the rule.", unit: .bytes,
      when: "the rule has a place in the payload"),
    Field("line", .integer, "Line of the payload, from 1.", when: "the rule has a place in the payload"),
    Field("column", .integer, "Character of the line, from 1.", when: "the rule has a place in the payload"),
    Field("message", .text, "The rule in words, with what is particular to the payload."),
  ]

  private static let note: Shape = .values([
    "alert_ignored": "The alert is neither a string nor a dictionary.",
    "args_not_strings": "Arguments that are not strings are shown as they were written.",
    "args_too_few": "An argument is missing, so its placeholder stays.",
    "background_unsure": "The value of content-available is not the number 1, so the app may not wake.",
    "badge_ignored": "The badge is not a whole number of 0 or more.",
    "category_ignored": "The system ignores the category, or there is no alert for its buttons.",
    "category_unknown": "The app has no such category.",
    "invalid": "The payload is no JSON object, or its aps no dictionary.",
    "key_missing": "The table of the language lacks a key.",
    "mutable_ignored": "The app's extension is not called.",
    "nothing_shown": "There is neither text nor badge nor sound.",
    "sound_default": "The sound is not the name of a sound file, so the default is played.",
    "sound_empty": "The sound is empty, so none is played.", "sound_ignored": "The sound is not a string.",
    "subtitle_ignored": "The system has no subtitles, or there is no text for one.",
    "text_and_key": "A text and its key are both given; reports differ on which one is shown.",
    "thread_ignored": "The system has no groups of notifications.",
    "title_ignored": "The system has no titles.",
    "text_cut": "A text is longer than 64 KiB; its beginning is shown.",
    "title_watch_and_center": "The title is shown on a watch and in Notification Center only.",
  ])
}
