import COpenSSL

/// Bytes in OpenSSL's memory that it reads from or writes to.
@safe final class MemoryText {
  /// Safe because this object creates and owns it, and `deinit` frees it.
  let pointer: OpaquePointer

  /// The bytes are copied; the copy is wiped when it is freed.
  init(_ bytes: [UInt8] = []) throws(TLSError) {
    guard let pointer = unsafe BIO_new(BIO_s_mem()) else { throw .fromOpenSSL(.credentials, "out of memory") }
    unsafe self.pointer = pointer
    guard bytes.isEmpty || (unsafe BIO_write(pointer, bytes, Int32(clamping: bytes.count))) == bytes.count else {
      throw .fromOpenSSL(.credentials, "out of memory")
    }
  }

  deinit { unsafe BIO_free(pointer) }

  /// Bytes written and not read yet.
  var bytes: [UInt8] {
    var start: UnsafeMutablePointer<CChar>?
    let count = unsafe apnscope_BIO_get_mem_data(pointer, &start)
    // Safe: the memory belongs to the BIO, which lives through this copy.
    return unsafe Array(UnsafeRawBufferPointer(start: start, count: count))
  }

  /// Returns the bytes that `write` writes; throws if it returns `false`.
  static func written(_ doing: String, by write: (OpaquePointer) -> Bool) throws(TLSError) -> [UInt8] {
    let text = try MemoryText()
    guard unsafe write(text.pointer) else { throw .fromOpenSSL(.credentials, doing) }
    return text.bytes
  }
}
