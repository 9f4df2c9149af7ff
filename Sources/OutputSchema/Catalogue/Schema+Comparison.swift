extension Schema {
  /// The document of `apnscope compare --format json`.
  public static let comparison = Schema(
    "comparison", title: "Comparison of results", form: .document,
    text: [
      """
      `apnscope compare --format json` writes one JSON document: two sets of results of loads, or of ledgers, figure \
      by figure, with medians, their ratio, and of the figures that are judged whether they differ by more than chance.
      """
    ],
    root: .object([
      Field("schema", .exactly(1), "Version of this contract; a field that is renamed or retyped changes it."),
      Field("kind", .word("compare"), "Which document it is."),
      Field(
        "of", .values(["load": "Results of loads.", "simulate": "Ledgers of simulators."]),
        "Kind of the results.", since: "0.3"),
      Field("a", .array(.text), "Names of the results of side A."),
      Field("b", .array(.text), "Names of the results of side B."),
      Field("judged", .array(.text), "Names of the figures that are judged."),
      Field("figures", .array(.object(figure)), "The figures: those that are judged, then the others."),
      Field("differences", .array(.object(difference)), "Settings and facts of machines that are not the same in all."),
      Field("warnings", .array(.text), "Why differences may be other than they seem, as sentences."),
    ]),
    example: #"""
      {"schema": 1, "kind": "compare", "a": ["a1.json"], "b": ["b1.json"], "judged": ["accepted_per_s"]}
      """#)

  private static let figure: [Field] = [
    Field("figure", .text, "Name of the figure, as `accepted_per_s`; times are in microseconds."),
    Field("a", .object(side), "Its values on side A."),
    Field("b", .object(side), "Its values on side B."),
    Field("ratio", .number, "Median of B to that of A.", when: "both are there, and A's is not 0"),
    Field("p", .number, "Of the Mann-Whitney U test, two-sided.", when: "the figure is judged"),
    Field("p_holm", .number, "The same, corrected by Holm for all figures that are judged.", when: "it is judged"),
    Field("judgement", judgement, "Summary of the values."),
  ]

  private static let judgement: Shape = .values([
    "better": "B is better.", "worse": "B is worse.", "different": "They differ, and neither way is an improvement.",
    "same": "They differ by no more than chance would do.",
    "small": "They differ by more than chance, and by 15 % at most, as runs on one machine do for other reasons.",
    "too_few": "A side has fewer than five values.", "not_comparable": "Versions compute the figure in different ways.",
    "not_judged": "It is not among the figures that are judged.", "missing": "A side has no values.",
  ])

  private static let side: [Field] = [
    Field("median", .number, "Median of the values.", when: "there are any"),
    Field("values", .array(.number), "The values of the results that have one, in their order."),
  ]

  private static let difference: [Field] = [
    Field("name", .text, "Name of the setting or fact."),
    Field("a", .array(.text), "Its values on side A, each once; `-` for none."),
    Field("b", .array(.text), "Its values on side B, each once."),
  ]
}
