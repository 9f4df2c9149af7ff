extension FixedWidthInteger {
  /// The integer nearest to a number, clamped to the range, because numbers of documents may not fit; 0 for NaN.
  ///
  /// As `Int(_:)`, fractions are cut off.
  package init(nearest value: Double) {
    if value.isNaN {
      self = 0
    } else {
      self = Self(exactly: value.rounded(.towardZero)) ?? (value < 0 ? .min : .max)
    }
  }
}
