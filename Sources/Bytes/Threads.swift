import Dispatch
import Glibc

/// Runs `body` on a thread of its own, which ends with it. For work that blocks, or that has a priority of its own.
///
/// Where the system has no more threads it runs on a shared one of Dispatch, after what waits there.
package func startThread(_ body: @escaping @Sendable () -> Void) {
  var attributes = pthread_attr_t()
  unsafe pthread_attr_init(&attributes)
  defer { unsafe pthread_attr_destroy(&attributes) }
  unsafe pthread_attr_setdetachstate(&attributes, Int32(PTHREAD_CREATE_DETACHED))
  let box = unsafe Unmanaged.passRetained(Body(body))
  var thread = pthread_t()
  let code = unsafe pthread_create(
    &thread, &attributes,
    { argument in
      // Safe: it was retained for this thread alone.
      if let argument = unsafe argument { unsafe Unmanaged<Body>.fromOpaque(argument).takeRetainedValue().run() }
      return nil
    }, unsafe box.toOpaque())
  guard code != 0 else { return }
  unsafe box.release()
  DispatchQueue.global().async(execute: body)
}

private final class Body: Sendable {
  let run: @Sendable () -> Void
  init(_ run: @escaping @Sendable () -> Void) { self.run = run }
}
