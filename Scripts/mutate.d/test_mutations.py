#!/usr/bin/env python3
"""Tests of the tokenizer and the mutations of Scripts/mutate, which Scripts/test runs among its checks."""

import pathlib
import sys
import tomllib
import unittest

sys.dont_write_bytecode = True
FOLDER = pathlib.Path(__file__).resolve().parent
ROOT = FOLDER.parent.parent
sys.path.insert(0, str(FOLDER))
import mutations  # noqa: E402
import swift_source  # noqa: E402


def found(text, operator=None):
    """The changed lines of all places, or of those of one operator."""
    return [place.after for place in mutations.places("a.swift", text) if operator in (None, place.operator)]


def in_function(line):
    return f"func f() {{\n  let first = second\n  {line}\n  third(fourth)\n}}\n"


class SourceTests(unittest.TestCase):
    def kinds(self, text):
        return [(token.kind, token.text) for token in swift_source.Source(text).tokens]

    def test_strings_are_one_token_with_what_they_interpolate(self):
        for text in (
            '"a \\(b + "c \\(d)") e"', '#"a " \\(b)"#', '"""\n  "a" \\(b(")"))\n  """', '#"\\#("x")"#', '""', '"\\\\"',
            "#/a\"b/#",
        ):  # fmt: skip
            self.assertEqual(self.kinds(f"{text} + 1"), [("string", text), ("operator", "+"), ("number", "1")])

    def test_comments_are_no_tokens(self):
        self.assertEqual(self.kinds("a // b + c\n/* d /* e */ f */ g"), [("word", "a"), ("word", "g")])

    def test_numbers_have_their_fractions_and_exponents(self):
        for text in ("1_000", "0xff", "0x1p53", "1.5", "1e-6", "0b101"):
            self.assertEqual(self.kinds(text), [("number", text)])
        self.assertEqual([text for _, text in self.kinds("0..<4")], ["0", "..<", "4"])

    def test_what_is_compiled_conditionally_is_left_out(self):
        self.assertEqual(self.kinds("a\n#if B\nc\n#if D\ne\n#endif\n#endif\nf"), [("word", "a"), ("word", "f")])

    def test_space_tells_comparisons_from_generics(self):
        source = swift_source.Source("a < b; let c: Set<D> = []; e?.f; !g; h ? -1 : 2")
        fixities = [(token.text, token.fixity) for token in source.tokens if token.fixity]
        self.assertEqual(fixities, [
            ("<", "infix"), ("<", "bracket"), (">", "postfix"), ("=", "infix"), ("?", "postfix"), ("!", "prefix"),
            ("?", "infix"), ("-", "prefix")])  # fmt: skip

    def statements(self, text):
        source = swift_source.Source(text)
        return [(statement.block.kind, source.string(statement.first, statement.last)) for statement in source.statements]

    def test_statements_end_where_lines_end_unless_they_go_on(self):
        text = "func f() {\n  a = b\n    + c\n  d\n    .e { $0 }\n  if g,\n    h\n  {\n    i()\n  }\n  return\n}\n"
        self.assertEqual(self.statements(text)[1:], [
            ("code", "a = b\n    + c"), ("code", "d\n    .e { $0 }"), ("closure", "$0"),
            ("code", "if g,\n    h\n  {\n    i()\n  }"), ("code", "i()"), ("code", "return")])  # fmt: skip

    def test_labels_and_signatures_are_no_part_of_statements(self):
        text = "func f() {\n  switch a {\n  case 1, 2: b()\n  default: c { d, e in g() }\n  }\n}\n"
        self.assertEqual(self.statements(text)[2:], [
            ("switch", "case 1, 2:"), ("switch", "b()"), ("switch", "default:"), ("switch", "c { d, e in g() }"),
            ("closure", "g()")])  # fmt: skip

    def test_bodies_that_have_a_value_are_known(self):
        text = "struct S {\n  var a: Int { 1 + b }\n  var c: D { get { d } set { e = newValue } }\n  func f() { g() }\n}\n"
        source = swift_source.Source(text)
        known = {source.string(s.first, s.last): s.block.gives_value for s in source.statements if s.block.kind == "code"}
        self.assertEqual(known, {"1 + b": True, "d": True, "e = newValue": False, "g()": False})

    def test_brackets_that_do_not_fit_are_an_error(self):
        for text in ("f(", "f)", "f(]"):
            self.assertRaises(swift_source.SwiftError, swift_source.Source, text)


class PlaceTests(unittest.TestCase):
    def test_each_operator_changes_its_lines(self):
        for operator, line, changed in (
            ("comparison", "if a < b { c() }", ["if a <= b { c() }"]),
            ("comparison", "x = a.count == 3", ["x = a.count != 3"]),
            ("range", "for i in a..<b.count + 2 { c() }", ["for i in a..<1 + b.count + 2 { c() }"]),
            ("range", "x = y[...] + z[1...]", []),
            ("arithmetic", "x = a &+ b", ["x = a &- b"]),
            ("arithmetic", "x += a.reduce(0, +)", ["x -= a.reduce(0, +)"]),
            ("arithmetic", 'x = "a" + b', []),
            ("logic", "x = !a && b", ["x = a && b", "x = !a || b"]),
            ("condition", "guard a < b, let c, d else { return }", [
                "guard !(a < b), let c, d else { return }", "guard a < b, let c, !(d) else { return }"]),
            ("condition", "x = a ?? b ? c : d", ["x = !(a ?? b) ? c : d"]),
            ("condition", "if a == b { c() }", []),
            ("constant", "x = a[0x1f] + 255 + 1_000", [
                "x = a[0x20] + 255 + 1_000", "x = a[0x1f] + 254 + 1_000", "x = a[0x1f] + 255 + 1001"]),
            ("constant", "x = a.0 ? -1 : true", ["x = a.0 ? 0 : true", "x = a.0 ? -1 : false"]),
            ("return", "return a + b", ["return another value than (a + b)"]),
            ("return", "return .none", []),
            ("return", "return (a, b)", []),
            ("statement", "if a { b = c }", ["if a {  }"]),
            ("statement", "a.reserveCapacity(5)", []),
            ("min-max", "x = min(a, b.max())", ["x = max(a, b.max())"]),
            ("default", "x = a?.b(1) ?? c", ["x = c"]),
        ):  # fmt: skip
            with self.subTest(line):
                self.assertEqual([after for after in found(in_function(line), operator) if after != "(nothing)"], changed)

    def test_what_says_nothing_is_not_changed(self):
        for text in (
            "import A\n", "enum E: Int { case a = 1 }\n", "@available(macOS 13, *) extension A where B == C {}\n",
            in_function('precondition(a < 5, "\\(b + 1)")').replace("third(fourth)", "").replace("let first = second", ""),
            "struct S { static func == (a: S, b: S) -> Bool { .yes } }\n", "var debugDescription: String { a < b }\n",
            "func f() { while true { let a = b } }\n",
        ):  # fmt: skip
            with self.subTest(text):
                self.assertEqual(found(text), [])

    def test_implicit_returns_are_values(self):
        self.assertEqual(found("var a: Bool { b.c }\n", "return"), ["var a: Bool { another value than (b.c) }"])
        self.assertEqual(found("func a() { b.c }\n", "return"), [])

    def test_an_initializer_keeps_its_assignments(self):
        self.assertEqual(found("init() {\n  a = b\n  c += d\n}\n", "statement"), ["(nothing)"])


class MutatedTests(unittest.TestCase):
    TEXT = "func f() -> Bool {\n  if !a && b < 7 { c += min(d, 1) }\n  return a // é\n}\n"

    def numbered(self):
        return dict(enumerate(mutations.places("a.swift", self.TEXT), 1))

    def test_all_mutants_are_in_one_text(self):
        numbered = self.numbered()
        text, _ = mutations.mutated(self.TEXT, numbered)
        marks = [mutations.mark(number) for number in numbered]
        numbers = {(place.operator, place.change): number for number, place in numbered.items()}
        self.assertEqual(text.splitlines()[1], (
            f"  if mutantNot({numbers['condition', 'negated']}, {marks[numbers['logic', '! removed'] - 1]}a "
            f"{marks[numbers['logic', '&& → ||'] - 1]} b {marks[numbers['comparison', '< → <='] - 1]} "
            f"(mutant({numbers['constant', '7 → 8']}) ? 8 : 7)) {{ if !mutant({numbers['statement', 'removed']}) {{ "
            f"c {marks[numbers['arithmetic', '+= → -='] - 1]} mutantMin({numbers['min-max', 'min → max']}, d, "
            f"(mutant({numbers['constant', '1 → 2']}) ? 2 : 1)) }} }}"))  # fmt: skip
        self.assertEqual(text.splitlines()[2], f"  return mutantValue({numbers['return', 'other value']}, a) // é")
        self.assertEqual(text.count("\n"), self.TEXT.count("\n"))

    def test_a_mutant_is_where_the_compiler_says(self):
        numbered = self.numbered()
        text, spans = mutations.mutated(self.TEXT, numbered)
        lines = text.encode().split(b"\n")
        for number, place in numbered.items():
            line, first, last = spans[number]
            shown = lines[line - 1][first - 1 : last - 1].decode()
            self.assertTrue(shown == mutations.mark(number) or f"({number}" in shown, shown)
            self.assertEqual(line, place.line)

    def test_the_switch_declares_an_operator_for_each_place(self):
        numbered = self.numbered()
        text = mutations.switch(numbered)
        declared = [number for number, place in numbered.items() if place.declarations]
        self.assertEqual(len(declared), 4)
        for number in declared:
            self.assertIn(f"operator {mutations.mark(number)}", text)
            self.assertIn(f"mutant({number}) ?" if number != declared[-1] else f"if mutant({number})", text)
        self.assertNotIn("NUMBER", text)
        self.assertNotIn("MOST", text)

    def test_no_two_marks_are_the_same(self):
        self.assertEqual(len({mutations.mark(number) for number in range(1, 5_000)}), 4_999)

    def test_the_order_takes_operators_in_turn_and_depends_on_the_seed(self):
        def order(seed, text):
            return [(place.operator, place.before) for place in mutations.in_order(mutations.places("a.swift", text), seed)]

        text = "".join(in_function(f"x{number} = a + {number}") for number in range(20))
        self.assertEqual(order(1, text), order(1, text))
        self.assertNotEqual(order(1, text), order(2, text))
        self.assertEqual([operator for operator, _ in order(1, text)[:6]], ["arithmetic", "constant", "statement"] * 2)
        # Other lines do not change which of the same operator comes first.
        longer = [line for line in order(1, in_function("y = b - 5") + text) if line[1] != "y = b - 5"]
        self.assertEqual([line for line in longer if line[0] == "constant"], [
            line for line in order(1, text) if line[0] == "constant"])  # fmt: skip


class EquivalentTests(unittest.TestCase):
    def test_each_entry_is_about_a_place(self):
        entries = tomllib.loads((FOLDER / "equivalent.toml").read_text(encoding="utf-8")).get("equivalent", [])
        for entry in entries:
            with self.subTest(entry):
                places = mutations.places(entry["file"], (ROOT / entry["file"]).read_text(encoding="utf-8"))
                known = {(place.before, place.operator, entry.get("change", "") and place.change) for place in places}
                self.assertIn((entry["line"], entry["operator"], entry.get("change", "")), known)
                self.assertTrue(entry["reason"])


if __name__ == "__main__":
    unittest.main()
