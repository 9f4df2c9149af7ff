import CPrefetch

/// Asks for memory to be brought into the processor's cache, line by line, because it is wanted soon.
///
/// Safe: nothing is read.
@inlinable @inline(__always)
package func prefetch(_ memory: UnsafeRawBufferPointer) {
  guard let base = memory.baseAddress else { return }
  var offset = 0
  while offset < memory.count {
    unsafe apnscope_prefetch(base + offset)
    offset &+= 64
  }
}

extension Array {
  /// Prefetches elements; nothing happens if the range is empty.
  @inlinable @inline(__always)
  package func prefetch(_ range: Range<Int>) {
    guard range.lowerBound >= 0, range.upperBound <= count else { return }
    let stride = MemoryLayout<Element>.stride
    let bytes = range.lowerBound &* stride..<range.upperBound &* stride
    unsafe withUnsafeBytes { memory in unsafe Bytes.prefetch(UnsafeRawBufferPointer(rebasing: memory[bytes])) }
  }
}
