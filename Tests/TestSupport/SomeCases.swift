/// About so many of these cases, spread over all of them; all in a whole run, or `most`.
///
/// For laws that hold case by case, where each takes its time.
public func some<Case>(_ few: Int, of all: [Case], whole most: Int = .max) -> [Case] {
  let count = TestRun.isWhole ? most : few
  guard count < all.count else { return all }
  return (0..<count).map { all[$0 * all.count / count] }
}
