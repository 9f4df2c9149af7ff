import Glibc

/// The system's text for an error number.
package enum SystemError {
  package static func text(_ code: Int32) -> String {
    // Safe: strerror returns a NUL-terminated string that is copied at once.
    unsafe String(cString: strerror(code))
  }
}
