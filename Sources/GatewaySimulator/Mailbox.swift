import Synchronization

/// Values that other threads have for one event loop, in the order in which they were put in.
///
/// Any thread puts elements in; the first one has the loop take them. An element that is put in while the loop takes is
/// either taken with the others, or the box is empty again, and the loop comes once more.
final class Mailbox<Element: Sendable>: Sendable {
  private let elements = Mutex<[Element]>([])
  private let wake: @Sendable (Mailbox) -> Void

  /// - Parameter wake: has the loop take the elements soon.
  init(wake: @escaping @Sendable (Mailbox) -> Void) { self.wake = wake }

  func put(_ element: Element) {
    let isFirst = elements.withLock { elements in
      elements.append(element)
      return elements.count == 1
    }
    if isFirst { wake(self) }
  }

  func take() -> [Element] {
    elements.withLock { elements in
      defer { elements = [] }
      return elements
    }
  }
}
