extension FixedWidthInteger {
  /// The nearest of these to a number, which may be anything: a document's numbers need not fit. 0 for what is no number.
  ///
  /// As `Int(_:)`, fractions are cut off.
  public init(nearest value: Double) {
    if value.isNaN {
      self = 0
    } else {
      self = Self(exactly: value.rounded(.towardZero)) ?? (value < 0 ? .min : .max)
    }
  }
}
