import ArgumentParser
import Bytes
import CommandFiles
import FoundationEssentials
import Payload

/// The resources of an app that decide how its pushes look.
struct AppResourceOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "The app's texts: a folder of LANGUAGE.lproj folders with Localizable.strings.", valueName: "folder"),
    completion: .directory)
  var strings: String?

  @Option(help: ArgumentHelp("The language of the device, as its .lproj folder is named.", valueName: "name"))
  var language = "en"

  @Option(
    help: ArgumentHelp(
      "The app's categories of actions, as JSON: {\"ID\": {\"actions\": [{\"id\": \"…\", \"title\": \"…\"}], \"minimal\": [\"…\"]}}.",
      valueName: "file"),
    completion: .file(extensions: ["json"]))
  var categories: String?

  @Option("Longest strings or category file.", valueName: "bytes")
  var maxResourceLength = ByteCount(16 << 20)

  func validate() throws {
    if language.isEmpty || language.contains("/") || language.hasPrefix(".") {
      throw ValidationError("--language takes the name of a language, as ja or pt-BR, not '\(language)'.")
    }
    guard 1...1 << 30 ~= maxResourceLength.bytes else {
      throw ValidationError("--max-resource-length must be 1 to 1073741824 bytes (got \(maxResourceLength.bytes)).")
    }
  }

  /// The table of the language; `nil` without --strings.
  func table() throws(FileFailure) -> [String: String]? {
    guard let strings else { return nil }
    let folder = Paths.path(of: "\(language).lproj", in: strings)
    let path = Paths.path(of: "Localizable.strings", in: folder)
    guard Paths.exists(path) else {
      throw FileFailure(.cannotOpen, path, "there is none; --strings needs a folder with \(language).lproj in it")
    }
    return try StringsFile.read(path, maximumLength: maxResourceLength.bytes)
  }

  /// Throws if a file cannot be used.
  func resources() throws(FileFailure) -> AppResources {
    var resources = AppResources()
    if let table = try table() { resources.strings[language] = table }
    if let categories { resources.categories = try CategoryFile.read(categories, maxResourceLength.bytes) }
    return resources
  }
}

/// `Localizable.strings`: lines `"KEY" = "format";`, or a property list with the same content.
enum StringsFile {
  static func read(_ path: String, maximumLength: Int) throws(FileFailure) -> [String: String] {
    let bytes = try wholeFile(path, maximumLength)
    do {
      return try parse(bytes)
    } catch {
      throw FileFailure(.unusable, path, "it is no strings file, nor a property list of texts")
    }
  }

  static func parse(_ bytes: [UInt8]) throws -> [String: String] {
    if bytes.allSatisfy({ $0 == 0x20 || (0x09...0x0d).contains($0) }) { return [:] }
    return try PropertyListDecoder().decode([String: String].self, from: Data(bytes))
  }
}

/// The categories that an app registers, as JSON.
enum CategoryFile {
  private struct Category: Decodable {
    struct Action: Decodable {
      var id: String
      var title: String
      var foreground: Bool?
      var destructive: Bool?
      var authentication: Bool?
    }

    var actions: [Action]
    var minimal: [String]?
  }

  static func read(_ path: String, _ maximumLength: Int) throws(FileFailure) -> [String: NotificationCategory] {
    let bytes = try wholeFile(path, maximumLength)
    do {
      return try JSONDecoder().decode([String: Category].self, from: Data(bytes)).mapValues { category in
        NotificationCategory(
          actions: category.actions.map {
            NotificationCategory.Action(
              id: $0.id, title: $0.title, isForeground: $0.foreground ?? false,
              isDestructive: $0.destructive ?? false, needsAuthentication: $0.authentication ?? false)
          }, minimal: category.minimal)
      }
    } catch {
      throw FileFailure(
        .unusable, path,
        "it is not {\"ID\":{\"actions\":[{\"id\":\"…\",\"title\":\"…\"}],\"minimal\":[\"…\"]}}: \(reason(error))")
    }
  }

  /// The position of the error in the file, and the reason.
  private static func reason(_ error: any Error) -> String {
    func place(_ context: DecodingError.Context) -> String {
      context.codingPath.map { $0.intValue.map { "[\($0)]" } ?? $0.stringValue }.joined(separator: ".")
    }
    return switch error as? DecodingError {
    case .keyNotFound(let key, let context)?: "\(place(context)) has no \(key.stringValue)"
    case .typeMismatch(_, let context)?, .valueNotFound(_, let context)?:
      "\(place(context)) has a value of another type"
    case .dataCorrupted(let context)?: context.debugDescription
    default: "\(error)"
    }
  }
}

private func wholeFile(_ path: String, _ maximumLength: Int) throws(FileFailure) -> [UInt8] {
  do {
    return try WholeFile.read(path, maximumLength: maximumLength)
  } catch {
    switch error {
    case .cannotOpen: throw FileFailure(.cannotOpen, path, "\(error)")
    case .readFailed: throw FileFailure(.readFailed, path, "\(error)")
    case .longerThan: throw FileFailure(.unusable, path, "\(error) (--max-resource-length)")
    }
  }
}
