import Foundation
import Testing

@testable import Reporting

/// Colours can be told from the ground that they are on, computed as WCAG 2 does.
@Suite("Contrast of colours")
struct ColorTests {
  /// The variables of a style under light, dark and print.
  private static func schemes(_ style: String, of selector: String) throws -> [String: [String: String]] {
    var schemes: [String: [String: String]] = [:]
    var scheme = "light"
    var inside = false
    for line in style.split(separator: "\n") {
      if line.hasPrefix("@media") {
        scheme = line.contains("dark") ? "dark" : line.contains("print") ? "print" : "other"
      } else if line == "}" {
        (scheme, inside) = ("light", false)
      }
      if line.drop(while: { $0 == " " }).hasPrefix("\(selector) {") { inside = true }
      guard inside else { continue }
      for match in line.matches(of: /--([a-z0-9-]+): (#[0-9a-f]{3,8})/) {
        schemes[scheme, default: [:]][String(match.1)] = String(match.2)
      }
      if line.drop(while: { $0 == " " }) == "}" { inside = false }
    }
    return schemes
  }

  private static func luminance(_ color: String) -> Double {
    var digits = color.dropFirst().map { Double($0.hexDigitValue ?? 0) }
    digits = digits.count == 3 ? digits.flatMap { [$0, $0] } : digits
    let parts = (0..<3).map { (index: Int) -> Double in
      let value = (digits[2 * index] * 16 + digits[2 * index + 1]) / 255
      return value <= 0.03928 ? value / 12.92 : pow((value + 0.055) / 1.055, 2.4)
    }
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]
  }

  private static func contrast(_ a: String, _ b: String) -> Double {
    let (low, high) = (min(luminance(a), luminance(b)), max(luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)
  }

  @Test("The computation agrees with known contrasts")
  func known() {
    #expect(abs(Self.contrast("#000", "#ffffff") - 21) < 0.01)
    // The orange of earlier charts.
    #expect(abs(Self.contrast("#e69f00", "#fff") - 2.25) < 0.01)
    #expect(abs(Self.contrast("#767676", "#fff") - 4.54) < 0.01)
  }

  @Test("Every series has 3:1 to the ground in light, in dark and in print, and no two have one colour")
  func series() throws {
    let schemes = try Self.schemes(Chart.style, of: ".apns-chart")
    #expect(Set(schemes.keys) == ["light", "dark", "print"])
    for (name, colors) in schemes {
      let ground = try #require(colors["ground"])
      let series = try Color.allCases.map { try #require(colors["c\($0.rawValue)"]) }
      #expect(Set(series).count == Color.allCases.count)
      for color in series { #expect(Self.contrast(color, ground) >= 3, "\(name): \(color)") }
      for text in ["ink", "soft"] {
        #expect(Self.contrast(try #require(colors[text]), ground) >= 4.5, "\(name): \(text)")
      }
    }
  }

  @Test("Every text of a page has 4.5:1 to the grounds that it is on, in light, in dark and in print")
  func text() throws {
    let schemes = try Self.schemes(Page.style, of: ":root")
    #expect(Set(schemes.keys) == ["light", "dark", "print"])
    for (name, colors) in schemes {
      let pairs =
        ["ink", "soft"].flatMap { text in
          ["ground", "raised", "good-ground", "bad-ground", "warning-ground"].map { (text, $0) }
        }
        + ["good", "bad", "warning"].flatMap { [($0, "ground"), ($0, "\($0)-ground")] }
        + (name == "print" ? [] : [("link", "ground")])
      for (text, ground) in pairs {
        let ratio = Self.contrast(try #require(colors[text]), try #require(colors[ground]))
        #expect(ratio >= 4.5, "\(name): \(text) on \(ground): \(ratio)")
      }
    }
  }
}
