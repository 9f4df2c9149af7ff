/// The texts of a load's payloads: an app's kinds of news, in the languages of its users.
///
/// The texts have neither quotes nor backslashes nor control characters, so they stand in JSON as they are.
struct SampleTheme: Sendable {
  /// The texts in one language: a title, and a format with two arguments, whose order depends on the language.
  struct Words: Sendable {
    let language: String
    let title: String
    let format: String
  }

  let key: String
  let sound: String
  let category: String
  /// Custom data: the name of the object that the push is about, and what its identifiers begin with.
  let object: String
  let prefix: String
  let firsts: [String]
  let seconds: [String]
  let words: [Words]

  /// Names of callers.
  static let callers = ["Aiko", "Olu", "Rita", "Jens", "Мария", "伟", "민준", "ليلى", "+358 40 0123"]

  /// The languages that every theme has.
  static let languages = ["en", "de", "fr", "es", "pt-BR", "ru", "ja", "zh-Hans", "ko", "ar"]

  static let all: [SampleTheme] = [
    SampleTheme(
      key: "MESSAGE_FROM", sound: "chime.caf", category: "MESSAGE", object: "thread", prefix: "t",
      firsts: ["Aiko", "Olu", "Rita", "Jens", "Мария", "伟", "민준", "ليلى"],
      seconds: ["Choir", "Team 4", "Garden", "Flat 12", "Kino", "部活", "산악회"],
      words: [
        Words(language: "en", title: "New message", format: "%1$@ wrote in %2$@"),
        Words(language: "de", title: "Neue Nachricht", format: "%1$@ hat in %2$@ geschrieben"),
        Words(language: "fr", title: "Nouveau message", format: "%1$@ a écrit dans %2$@"),
        Words(language: "es", title: "Mensaje nuevo", format: "%1$@ ha escrito en %2$@"),
        Words(language: "pt-BR", title: "Nova mensagem", format: "%1$@ escreveu em %2$@"),
        Words(language: "ru", title: "Новое сообщение", format: "%1$@: сообщение в %2$@"),
        Words(language: "ja", title: "新着メッセージ", format: "%2$@に%1$@さんが書き込みました"),
        Words(language: "zh-Hans", title: "新消息", format: "%1$@在%2$@中发了消息"),
        Words(language: "ko", title: "새 메시지", format: "%1$@님이 %2$@에 글을 남겼습니다"),
        Words(language: "ar", title: "رسالة جديدة", format: "كتب %1$@ في %2$@"),
      ]),
    SampleTheme(
      key: "ORDER_SHIPPED", sound: "default", category: "ORDER", object: "order", prefix: "o",
      firsts: ["2 × tea", "1 × lamp", "boots", "3 × paper", "a kettle", "rope"],
      seconds: ["18:30", "7:40", "12:05", "20:15", "9:00"],
      words: [
        Words(language: "en", title: "On its way 📦", format: "%1$@ will arrive at %2$@"),
        Words(language: "de", title: "Unterwegs 📦", format: "%1$@ kommt um %2$@ Uhr"),
        Words(language: "fr", title: "En route 📦", format: "%1$@ arrive à %2$@"),
        Words(language: "es", title: "En camino 📦", format: "%1$@ llega a las %2$@"),
        Words(language: "pt-BR", title: "A caminho 📦", format: "%1$@ chega às %2$@"),
        Words(language: "ru", title: "В пути 📦", format: "%1$@: доставка в %2$@"),
        Words(language: "ja", title: "配送中 📦", format: "%2$@に%1$@が届きます"),
        Words(language: "zh-Hans", title: "配送中 📦", format: "%1$@将于%2$@送达"),
        Words(language: "ko", title: "배송 중 📦", format: "%1$@이(가) %2$@에 도착합니다"),
        Words(language: "ar", title: "في الطريق 📦", format: "يصل %1$@ في %2$@"),
      ]),
    SampleTheme(
      key: "GOAL", sound: "horn.aiff", category: "MATCH", object: "match", prefix: "m",
      firsts: ["North 2", "Harbour 1", "Rovers 3", "Süd 1", "Étoile 2"],
      seconds: ["South 1", "Athletic 0", "United 2", "West 1", "Racing 2"],
      words: [
        Words(language: "en", title: "Goal", format: "%1$@ – %2$@"),
        Words(language: "de", title: "Tor", format: "%1$@ : %2$@"),
        Words(language: "fr", title: "But", format: "%1$@ – %2$@"),
        Words(language: "es", title: "Gol", format: "%1$@ – %2$@"),
        Words(language: "pt-BR", title: "Gol", format: "%1$@ x %2$@"),
        Words(language: "ru", title: "Гол", format: "%1$@ : %2$@"),
        Words(language: "ja", title: "ゴール", format: "%1$@ 対 %2$@"),
        Words(language: "zh-Hans", title: "进球", format: "%1$@ 比 %2$@"),
        Words(language: "ko", title: "골", format: "%1$@ 대 %2$@"),
        Words(language: "ar", title: "هدف", format: "%1$@ – %2$@"),
      ]),
  ]
}
