import Bytes

/// Texts and buttons.
extension PayloadRenderer {
  /// Renders the texts; returns the members of an alert that is a dictionary.
  mutating func renderAlert(_ aps: PayloadMembers, _ tape: JSONTape, _ text: RawSpan) -> PayloadMembers? {
    guard let alert = aps[.alert] else { return nil }
    switch tape.kind(alert) {
    case .string:
      // Taken as it is: a percent sign means nothing in it.
      if !tape.isEmptyString(alert) { shown.body = tape.string(alert, text) }
      return nil
    case .object: break
    default:
      note(.alertIgnored)
      return nil
    }
    let members = tape.members(of: alert, .alert, text)
    shown.body = localized(members, .body, .locKey, .locArgs, tape, text)
    renderTitle(members, tape, text)
    renderSubtitle(members, tape, text)
    return members
  }

  private mutating func renderTitle(_ members: PayloadMembers, _ tape: JSONTape, _ text: RawSpan) {
    guard tape.isText(members[.title]) || tape.isText(members[.titleLocKey]) else { return }
    guard system >= .iOS8 else { return note(.titleIgnored) }
    shown.title = localized(members, .title, .titleLocKey, .titleLocArgs, tape, text)
    if system < .iOS10, shown.title != nil { note(.titleWatchAndCenter) }
  }

  private mutating func renderSubtitle(_ members: PayloadMembers, _ tape: JSONTape, _ text: RawSpan) {
    guard tape.isText(members[.subtitle]) || tape.isText(members[.subtitleLocKey]) else { return }
    guard system >= .iOS10, shown.body != nil || shown.title != nil else { return note(.subtitleIgnored) }
    shown.subtitle = localized(members, .subtitle, .subtitleLocKey, .subtitleLocArgs, tape, text)
  }

  /// A text that is given, or a format that is looked up by its key and filled.
  private mutating func localized(
    _ members: PayloadMembers, _ plain: PayloadKey, _ key: PayloadKey, _ arguments: PayloadKey, _ tape: JSONTape,
    _ text: RawSpan
  ) -> String? {
    let given = members[plain].flatMap { tape.isText($0) ? tape.string($0, text) : nil }
    guard let key = members[key], tape.isText(key) else { return given }
    if given != nil { note(.textAndKey) }
    let name = tape.string(key, text)
    let format: String
    if let found = strings[name] {
      format = found
    } else {
      note(.keyMissing)
      if let given { return given }
      format = name
    }
    let (filled, isComplete, isCut) = LocalizedFormat(format).filled(
      with: self.arguments(members[arguments], tape, text))
    if !isComplete { note(.argsTooFew) }
    if isCut { note(.textCut) }
    return filled.isEmpty ? nil : filled
  }

  private mutating func arguments(_ array: Int?, _ tape: JSONTape, _ text: RawSpan) -> [String] {
    guard let array, tape.kind(array) == .array else { return [] }
    var arguments: [String] = []
    var areStrings = true
    tape.forEachElement(ofArray: array) { element in
      if tape.kind(element) == .string {
        arguments.append(tape.string(element, text))
      } else {
        areStrings = false
        arguments.append(tape.written(element, text))
      }
    }
    if !areStrings { note(.argsNotStrings) }
    return arguments
  }

  mutating func renderButtons(
    _ aps: PayloadMembers, alert: PayloadMembers?, _ tape: JSONTape, _ text: RawSpan
  ) {
    let category = aps[.category].flatMap { tape.isText($0) ? tape.string($0, text) : nil }
    guard shown.body != nil || shown.title != nil else {
      if category != nil { note(.categoryIgnored) }
      return
    }
    shown.buttons.dialog = dialog(alert?[.actionLocKey], tape, text)
    guard let category else { return }
    guard system >= .iOS8 else { return note(.categoryIgnored) }
    guard let registered = categories[category] else { return note(.categoryUnknown) }
    shown.buttons = PayloadRendering.Buttons(
      dialog: ["Close", "Options"], options: registered.options, compact: registered.compact)
  }

  private mutating func dialog(_ actionKey: Int?, _ tape: JSONTape, _ text: RawSpan) -> [String] {
    guard let actionKey else { return ["Close", "View"] }
    if tape.kind(actionKey) == .null { return ["OK"] }
    guard tape.isText(actionKey) else { return ["Close", "View"] }
    let name = tape.string(actionKey, text)
    if strings[name] == nil { note(.keyMissing) }
    return ["Close", strings[name] ?? name]
  }
}
