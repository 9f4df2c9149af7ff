/// The open connections over HTTP/2, in slots that are used again. Their states are changed in place: they are large.
struct OpenConnections {
  private var slots: [ConnectionRequests] = []
  private var free: [Int] = []
  private var slotOf: [Int: Int] = [:]
  /// The connection found last: records of one come together.
  private var latest: (connection: Int, slot: Int)?

  /// The slot of a connection, which begins if it is not there.
  mutating func slot(of connection: Int) -> Int {
    if let slot = knownSlot(of: connection) { return slot }
    let slot = free.popLast() ?? slots.count
    if slot == slots.count { slots.append(ConnectionRequests()) }
    slotOf[connection] = slot
    latest = (connection, slot)
    return slot
  }

  /// The slot of a connection; `nil` if it is not there.
  mutating func knownSlot(of connection: Int) -> Int? {
    if let latest, latest.connection == connection { return latest.slot }
    guard let slot = slotOf[connection] else { return nil }
    latest = (connection, slot)
    return slot
  }

  subscript(slot: Int) -> ConnectionRequests {
    get { slots[slot] }
    @inline(__always) _modify { yield &slots[slot] }
  }

  /// Removes a connection, and returns its state.
  mutating func remove(_ connection: Int) -> ConnectionRequests? {
    guard let slot = slotOf.removeValue(forKey: connection) else { return nil }
    if latest?.connection == connection { latest = nil }
    var state = ConnectionRequests()
    swap(&state, &slots[slot])
    free.append(slot)
    return state
  }
}
