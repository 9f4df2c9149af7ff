import Bytes
import HTTP2

/// The different provider tokens of a connection. A repeated value is recognised by how it was coded, or else by a digest;
/// no value is kept.
struct TokenList: Sendable {
  private struct Digest: Hashable {
    var first: UInt64
    var second: UInt64
  }

  private let limit: Int
  private(set) var list: [Result<ProviderToken, ProviderToken.Problem>] = []
  private var numbers: [Digest: Int] = [:]
  private var latest: (origin: FieldList.Origin, number: Int?) = (.literal, nil)

  init(limit: Int) { self.limit = limit }

  var heldBytes: Int { list.count * 200 }

  /// The number of a value, from 1; `nil` for a new one beyond the limit.
  mutating func number(of value: RawSpan, _ origin: FieldList.Origin) -> Int? {
    if origin == latest.origin, origin != .literal { return latest.number }
    let digest = Digest(
      first: ContentDigest(value).value, second: ContentDigest(value, seed: 0x2545_f491_4f6c_dd1d).value)
    var number = numbers[digest]
    if number == nil, list.count < limit {
      do throws(ProviderToken.Problem) {
        list.append(.success(try ProviderToken(parsing: value)))
      } catch {
        list.append(.failure(error))
      }
      number = list.count
      numbers[digest] = number
    }
    latest = (origin, number)
    return number
  }
}
