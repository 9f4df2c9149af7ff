import Bytes

/// The client streams of a recording's connections, by slot.
///
/// The memory of streams never moves, so that another thread can read one stream while the dissector opens or changes
/// others. A copy refers to the same streams.
///
/// This is all that the dissector's thread and the lanes use at the same time. `@unchecked Sendable` is valid because
/// each stream is used by one thread at a time, and `count` by the dissector's alone. The interleavings that were
/// examined, with D for the dissector's thread and L for a lane's; a batch is D's after `LaneReader.take`, and events
/// are in the same order for both:
/// - L reads ahead on a slot and D has an earlier event of it: the slot is L's, which has read that event too, and D
///   puts in what L found without access to the stream (`ParallelReading.play`). If L did not read it, L has left the
///   slot (`LaneWork.left`) before, in the same batch or an earlier one, and does not touch it until the next turn.
/// - L leaves a slot in the middle of an event and D reads the rest (`Dissector.consumeRest`): D has taken the batch, so
///   L has left.
/// - D opens or closes a connection in a slot: these are events, at which L leaves it; the next one in the slot is D's
///   until the next turn.
/// - D adds a slot while L reads another one: chunks do not move. The new slot's entry in `chunks` is written at a
///   `.connection` event; L leaves the slot at that event without looking at the stream, for a turn.
/// - D begins a turn (`ParallelReading.submit`), applies new secrets (`Dissector.retryTLS`), prefetches streams
///   (`prefetch`), or ends all connections: no lane has a job then.
/// - Two lanes: each slot is one lane's (`LaneOwner`), and lanes write to no other.
/// - A stream's `TLSStream` is D's too, through `Connection.tls`: D uses it at events of that slot, as above.
@safe struct ClientStreams: @unchecked Sendable {
  private typealias Chunk = UnsafeMutablePointer<ClientStream>

  /// The number of streams in a chunk, and of chunks at most: a stream is some hundred bytes, so memory runs out before
  /// the chunks do.
  private static let length = 256
  private static let maximumChunks = 1 << 20

  /// Owns the memory. Safe because only `chunks` is shared, and each of its entries is written once, before any thread
  /// knows a slot in that chunk.
  @safe private final class Memory {
    let chunks = UnsafeMutablePointer<Chunk?>.allocate(capacity: maximumChunks)
    var count = 0
    var initialized = 0

    deinit {
      for number in 0..<initialized {
        guard let chunk = unsafe chunks[number] else { continue }
        unsafe chunk.deinitialize(count: length)
        unsafe chunk.deallocate()
      }
      unsafe chunks.deallocate()
    }
  }

  private let memory: Memory
  /// The memory's: counting references to that for each event would keep threads waiting for each other.
  private let chunks: UnsafeMutablePointer<Chunk?>
  /// The stream of a slot without a connection.
  private let blank: ClientStream

  init(options: DissectionOptions) {
    memory = Memory()
    unsafe chunks = memory.chunks
    blank = ClientStream(connection: 0, options: options)
  }

  var count: Int { memory.count }

  /// Adds a stream of no connection.
  func append() {
    let number = memory.count / Self.length
    precondition(number < Self.maximumChunks)
    if number == memory.initialized {
      let chunk = Chunk.allocate(capacity: Self.length)
      unsafe chunk.initialize(repeating: blank, count: Self.length)
      unsafe (memory.chunks + number).initialize(to: chunk)
      memory.initialized += 1
    }
    memory.count += 1
  }

  func removeLast() {
    memory.count -= 1
    clear(memory.count)
  }

  /// The slot's connection has ended.
  func clear(_ slot: Int) { self[slot] = blank }

  /// A stream, to be used only by the one thread whose turn it is.
  subscript(slot: Int) -> ClientStream {
    // Safe: slots come from `append`, which has initialized their chunk.
    @inline(__always) _read { yield unsafe place(slot).pointee }
    @inline(__always) nonmutating _modify { yield unsafe &place(slot).pointee }
  }

  /// Prefetches a stream: with thousands of connections none of them is in the processor's cache.
  @inline(__always)
  func prefetch(_ slot: Int) {
    guard slot < memory.count else { return }
    unsafe Bytes.prefetch(UnsafeRawBufferPointer(start: place(slot), count: MemoryLayout<ClientStream>.size))
  }

  @inline(__always)
  private func place(_ slot: Int) -> Chunk {
    guard slot >= 0, let chunk = unsafe chunks[slot / Self.length] else {
      preconditionFailure("no connection has slot \(slot)")
    }
    return unsafe chunk + slot % Self.length
  }
}
