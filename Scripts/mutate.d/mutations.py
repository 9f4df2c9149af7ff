"""Finds the places where a Swift source can be mutated, and writes the source with all mutants at once.

Mutants are schemata: each is in its place and does nothing until it is selected. `a < b` becomes `a ⠁⠃ b` with an infix
operator of that place alone, which does what `<` does, or what `<=` does when its mutant is selected. Other places call
`mutant(7)`. These operators are generic and have the precedence of the original, so that the type checker sees the same
expression with fewer overloads. They are transparent like those of the standard library, so that they are as fast. One more
file of the target holds the switch and these operators. Lines are neither added nor removed, so that the compiler's
messages name lines of the original.
"""

import dataclasses
import hashlib
import re

import swift_source

# Names and descriptions; the sample takes them in turn.
OPERATORS = {
    "comparison": "< and <=, > and >=, == and != swapped",
    "range": "the upper bound of ..< and ... plus 1",
    "arithmetic": "+ and -, &+ and &-, * and /, % and /, += and -=, & and |, << and >> swapped",
    "logic": "&& and || swapped, ! removed",
    "condition": "a condition of if, guard, while or ? negated",
    "constant": "n to n + 1 (255 and the like to one less), true and false swapped",
    "return": "a returned number plus 1, Bool negated, optional nil, string or collection empty",
    "statement": "an assignment or a call removed",
    "min-max": "min and max swapped",
    "default": "?? always takes its right side",
}
SKIPPED_CALLS = {"precondition", "preconditionFailure", "assert", "assertionFailure", "fatalError"}
KEYWORDS = {
    "associatedtype", "break", "case", "catch", "class", "continue", "default", "defer", "deinit", "discard", "do",
    "else", "enum", "extension", "fallthrough", "for", "func", "guard", "if", "import", "init", "let", "protocol", "repeat",
    "return", "struct", "subscript", "switch", "throw", "typealias", "var", "while", "yield",
}  # fmt: skip
# The condition of `a ? b : c` begins after one of these.
BEFORE_EXPRESSION = {
    "return", "in", "if", "guard", "while", "case", "where", "switch", "throw", "else", "try", "await", "unsafe", "yield",
    ",", ";", ":",
}  # fmt: skip
ASSIGNMENTS = {"=", "+=", "-=", "*=", "/=", "%=", "&+=", "&-=", "&*=", "|=", "&=", "^=", "<<=", ">>="}

SAME, BOTH = "<T: {}>(a: T, b: T) -> {}", "<T: BinaryInteger, U: BinaryInteger>(a: T, b: U) -> {}"
LATE = "(a: Bool, b: @autoclosure () throws -> Bool) rethrows -> Bool"


@dataclasses.dataclass(frozen=True)
class Infix:
    """The mutation of an infix operator, and how the operator in its place is declared."""

    operator: str
    other: str
    precedence: str
    signatures: tuple
    second: tuple = ()  # disfavoured overloads
    body: str = "mutant(NUMBER) ? a OTHER b : a OLD b"


def compared(other):
    equatable = "Equatable" if other in ("==", "!=") else "Comparable"
    second = (BOTH.format("Bool"),)
    if equatable == "Equatable":
        second += ("<T>(a: T?, b: _OptionalNilComparisonType) -> Bool",)
    return Infix("comparison", other, "Comparison", (SAME.format(equatable, "Bool"),), second)


def computed(other, precedence, *kinds):
    return Infix("arithmetic", other, precedence, tuple(SAME.format(kind, "T") for kind in kinds))


def assigned(other, kind):
    return Infix("arithmetic", other, "Assignment", (f"<T: {kind}>(a: inout T, b: T)",), (),
                 "if mutant(NUMBER) { a OTHER b } else { a OLD b }")  # fmt: skip


def ranged(kind, old):
    return Infix("range", old, "RangeFormation", (f"<T: FixedWidthInteger>(a: T, b: T) -> {kind}<T>",), (),
                 "mutant(NUMBER) ? a OLD b + 1 : a OLD b")  # fmt: skip


NOT = [
    "prefix operator MARK",
    "@_transparent @usableFromInline prefix func MARK(a: Bool) -> Bool { mutant(NUMBER) ? a : !a }",
]
SHIFTED = ("<T: BinaryInteger, U: BinaryInteger>(a: T, b: U) -> T",)
INFIX = {
    "<": compared("<="), "<=": compared("<"), ">": compared(">="), ">=": compared(">"),
    "==": compared("!="), "!=": compared("=="),
    "..<": ranged("Range", "..<"), "...": ranged("ClosedRange", "..."),
    "+": computed("-", "Addition", "AdditiveArithmetic"), "-": computed("+", "Addition", "AdditiveArithmetic"),
    "&+": computed("&-", "Addition", "FixedWidthInteger"), "&-": computed("&+", "Addition", "FixedWidthInteger"),
    "*": computed("/", "Multiplication", "BinaryInteger", "FloatingPoint"),
    "/": computed("*", "Multiplication", "BinaryInteger", "FloatingPoint"),
    "%": computed("/", "Multiplication", "BinaryInteger"),
    "&": computed("|", "Multiplication", "BinaryInteger"), "|": computed("&", "Addition", "BinaryInteger"),
    "<<": Infix("arithmetic", ">>", "BitwiseShift", SHIFTED), ">>": Infix("arithmetic", "<<", "BitwiseShift", SHIFTED),
    "+=": assigned("-=", "AdditiveArithmetic"), "-=": assigned("+=", "AdditiveArithmetic"),
    "&+=": assigned("&-=", "FixedWidthInteger"), "&-=": assigned("&+=", "FixedWidthInteger"),
    "&&": Infix("logic", "||", "LogicalConjunction", (LATE,), (), "try mutant(NUMBER) ? a OTHER b() : a OLD b()"),
    "||": Infix("logic", "&&", "LogicalDisjunction", (LATE,), (), "try mutant(NUMBER) ? a OTHER b() : a OLD b()"),
    "??": Infix(
        "default", "", "NilCoalescing", ("<T>(a: T?, b: @autoclosure () throws -> T) rethrows -> T",),
        ("<T>(a: T?, b: @autoclosure () throws -> T?) rethrows -> T?",), "try mutant(NUMBER) ? b() : mutantCoalesced(a) { try b() }"),
}  # fmt: skip

SWITCH = """import Glibc

// The selected mutant, or 0.
private let chosen = unsafe getenv("APNSCOPE_MUTANT").flatMap { unsafe Int(String(cString: $0)) } ?? 0
// The file for the numbers of mutants that are reached, or -1.
private let reached =
  unsafe getenv("APNSCOPE_MUTANT_REACHED").map { unsafe open($0, O_WRONLY | O_CREAT | O_APPEND, 0o644) } ?? -1
nonisolated(unsafe) private let isNoted = UnsafeMutablePointer<Bool>.allocate(capacity: MOST + 1)
private let isRecording: Bool = {
  unsafe isNoted.initialize(repeating: false, count: MOST + 1)
  return reached >= 0
}()

@usableFromInline func mutant(_ number: Int) -> Bool {
  if isRecording, unsafe !isNoted[number] {
    unsafe isNoted[number] = true
    let line = Array("\\(number)\\n".utf8)
    _ = unsafe line.withUnsafeBytes { unsafe write(reached, $0.baseAddress, $0.count) }
  }
  return number == chosen
}

@_transparent @usableFromInline func mutantNot(_ number: Int, _ value: Bool) -> Bool {
  mutant(number) ? !value : value
}

@usableFromInline protocol MutantOptional { var isNone: Bool { get } }
extension Optional: MutantOptional { @usableFromInline var isNone: Bool { if case .none = self { true } else { false } } }
// Where both sides of ?? are optional the compiler may choose this one, with an optional T: a nil left side arrives as
// .some(nil) then, and is nil all the same.
@usableFromInline func mutantCoalesced<T>(_ a: T?, _ b: () throws -> T) rethrows -> T {
  guard let a, (a as? any MutantOptional)?.isNone != true else { return try b() }
  return a
}
@usableFromInline func mutantCoalesced<T>(_ a: T?, _ b: () throws -> T?) rethrows -> T? {
  if let a { return a }
  return try b()
}

@_transparent @usableFromInline func mutantMin<T: Comparable>(_ number: Int, _ a: T, _ b: T) -> T {
  mutant(number) ? Swift.max(a, b) : Swift.min(a, b)
}
@_transparent @usableFromInline func mutantMin<T: Comparable>(_ number: Int, _ a: T, _ b: T, _ c: T) -> T {
  mutant(number) ? Swift.max(a, b, c) : Swift.min(a, b, c)
}
@_transparent @usableFromInline func mutantMax<T: Comparable>(_ number: Int, _ a: T, _ b: T) -> T {
  mutant(number) ? Swift.min(a, b) : Swift.max(a, b)
}
@_transparent @usableFromInline func mutantMax<T: Comparable>(_ number: Int, _ a: T, _ b: T, _ c: T) -> T {
  mutant(number) ? Swift.min(a, b, c) : Swift.max(a, b, c)
}

@_transparent @usableFromInline func mutantValue(_ number: Int, _ value: Bool) -> Bool {
  mutant(number) ? !value : value
}
@_transparent @usableFromInline func mutantValue<T: FixedWidthInteger>(_ number: Int, _ value: T) -> T {
  mutant(number) ? value &+ 1 : value
}
@_transparent @usableFromInline func mutantValue<T: BinaryFloatingPoint>(_ number: Int, _ value: T) -> T {
  mutant(number) ? value + 1 : value
}
@_transparent @usableFromInline func mutantValue<T: RangeReplaceableCollection>(_ number: Int, _ value: T) -> T {
  mutant(number) ? T() : value
}
@_transparent @usableFromInline func mutantValue<K, V>(_ number: Int, _ value: [K: V]) -> [K: V] {
  mutant(number) ? [:] : value
}
@_transparent @usableFromInline func mutantValue<T>(_ number: Int, _ value: Set<T>) -> Set<T> {
  mutant(number) ? [] : value
}
@_transparent @usableFromInline func mutantValue<T>(_ number: Int, _ value: T?) -> T? {
  mutant(number) ? nil : value
}
"""


@dataclasses.dataclass
class Place:
    """A place that can be mutated. MARK and NUMBER in its texts stand for the mutant's operator and number."""

    file: str
    line: int
    operator: str
    change: str
    before: str  # the line
    after: str  # the line of the mutant
    start: int
    end: int
    edits: list  # (start, end, text)
    declarations: list
    statement: tuple  # first and last line of the innermost statement around it
    body: tuple  # first and last line of the declaration around it
    digest: str = ""  # identifies it, and does not change with other lines


def mark(number):
    """An operator of two Braille characters, which no source uses."""
    return chr(0x2801 + number // 255) + chr(0x2801 + number % 255)


class Finder:
    """Finds the places of a file."""

    def __init__(self, file, text):
        self.file, self.source = file, swift_source.Source(text)
        self.tokens, self.pair, self.is_text = self.source.tokens, self.source.pair, self.source.is_text
        self.statement_of = [None] * len(self.tokens)
        for statement in self.source.statements:
            for index in range(statement.first, statement.last + 1):
                self.statement_of[index] = statement
        self.skipped = set(self.source.attributes)
        for statement in self.source.statements:
            self.skipped.update(self.skips(statement))
        for index, token in enumerate(self.tokens):
            is_call = token.text in SKIPPED_CALLS or token.kind == "directive"
            if is_call and self.is_text(index + 1, "("):
                self.skipped.update(range(index, self.pair[index + 1] + 1))
        self.found = []

    def skips(self, statement):
        """The tokens of a declaration that are not executed."""
        head, block = self.tokens[statement.head], statement.block.kind
        body = self.source.find(statement.head, statement.last + 1, "{")
        if head.text in swift_source.TYPES and body is not None and self.tokens[statement.head + 1].kind == "word":
            return range(statement.first, body)
        is_named = head.text in ("import", "typealias", "associatedtype", "precedencegroup", "operator")
        if is_named or head.text == "case" and block == "type":
            return range(statement.first, statement.last + 1)
        if head.text == "var" and self.is_text(statement.head + 1, "debugDescription"):
            return range(statement.first, statement.last + 1)
        if head.text in swift_source.FUNCTIONS:
            condition = self.source.find(statement.head, body or statement.last + 1, "where")
            named = range(statement.head, statement.head + 2)
            return [*named, *(range(condition, body or statement.last + 1) if condition is not None else [])]
        return ()

    # MARK: all places

    def places(self):
        for index, token in enumerate(self.tokens):
            if index in self.skipped:
                continue
            if token.kind == "operator":
                self.find_operator(index)
            elif token.kind == "number":
                self.find_number(index)
            elif token.kind == "word" and not self.is_text(index - 1, "."):
                self.find_word(index)
        for statement in self.source.statements:
            if statement.first not in self.skipped:
                self.find_removable(statement)
                self.find_implicit_return(statement)
        return self.found

    def find_operator(self, index):
        token, text = self.tokens[index], self.source.text
        if token.text == "!" and token.fixity == "prefix":
            self.add("logic", "! removed", index, index, [(token.start, token.end, "MARK")], "", NOT)
        if token.fixity != "infix":
            return
        if token.text == "?":
            return self.find_condition(self.expression_start(index), index - 1)
        infix = INFIX.get(token.text)
        is_spaced = text[token.start - 1].isspace() and text[token.end].isspace()
        is_range = infix is not None and infix.operator == "range"
        # A function's name, an argument as in reduce(0, +), or all of a collection: [...].
        is_alone = self.tokens[index + 1].kind == "close" or self.tokens[index - 1].kind == "open"
        if infix is None or not (is_spaced or is_range) or is_alone or self.is_text(index + 1, ","):
            return
        # + joins strings.
        if infix.operator == "arithmetic" and "string" in (self.tokens[index - 1].kind, self.tokens[index + 1].kind):
            return
        shown = infix.other
        if infix.operator == "range":
            change = f"upper bound of {token.text} + 1"
            shown = [(token.end, token.end, "1 + ")]
        elif infix.operator == "default":
            change = "?? takes its right side"
            shown = [(self.tokens[self.operand_start(index - 1)].start, token.end + 1, "")]
        else:
            change = f"{token.text} → {infix.other}"
        edit = (token.start, token.end, "MARK")
        self.add(infix.operator, change, index, index, [edit], shown, declared(token.text, infix))

    def operand_end(self, index):
        """Where the operand ends that begins here."""
        if self.tokens[index].fixity == "prefix":
            index += 1
        while True:
            if self.tokens[index].kind == "open":
                index = self.pair[index]
            after = index + 1
            goes_on = self.is_text(after, ".", "(", "[") or self.is_text(index, ".")
            if after < len(self.tokens) and self.tokens[after].fixity == "postfix":
                goes_on = True
            if not goes_on or (self.tokens[after].is_first and not self.is_text(after, ".")):
                return index
            index = after

    def operand_start(self, index):
        while True:
            if self.tokens[index].kind == "close":
                index = self.pair[index]
                if self.tokens[index - 1].end != self.tokens[index].start or self.tokens[index - 1].kind == "open":
                    return index
                index -= 1
            elif self.is_text(index - 1, "."):
                index -= 2
                if self.tokens[index + 1].start != self.tokens[index].end:
                    return index + 1
            elif self.tokens[index].fixity == "postfix":
                index -= 1
            else:
                return index

    def find_number(self, index):
        token = self.tokens[index]
        if self.is_text(index - 1, ".", "\\") or self.tokens[index - 1].fixity == "bracket":
            return
        # The sign of a negative number is a part of it.
        sign = self.tokens[index - 1]
        is_negative = sign.text == "-" and sign.fixity == "prefix" and sign.end == token.start
        text = f"-{token.text}" if is_negative else token.text
        self.replace_constant(index - 1 if is_negative else index, index, increased(text))

    def replace_constant(self, first, last, other):
        start, end, text = self.tokens[first].start, self.tokens[last].end, self.source.string(first, last)
        edit = (start, end, f"(mutant(NUMBER) ? {other} : {text})")
        self.add("constant", f"{text} → {other}", first, last, [edit], [(start, end, other)])

    def find_word(self, index):
        word = self.tokens[index].text
        if word in ("true", "false"):
            # The compiler requires no return after `while true`.
            if self.is_text(index - 1, "while"):
                return
            self.replace_constant(index, index, "false" if word == "true" else "true")
        elif word in ("min", "max") and self.is_text(index + 1, "(") and not self.is_text(index - 1, "func"):
            opening = index + 1
            if self.source.find(opening + 1, self.pair[opening], ",") is not None:
                start, end = self.tokens[index].start, self.tokens[opening].end
                other = "max" if word == "min" else "min"
                name = "mutantMin" if word == "min" else "mutantMax"
                self.add("min-max", f"{word} → {other}", index, index, [(start, end, f"{name}(NUMBER, ")], other)
        elif word in ("if", "guard", "while"):
            self.find_conditions(index + 1)
        elif word == "where" and self.tokens[self.statement_of[index].head].text == "for":
            self.find_conditions(index + 1)
        elif word == "return":
            statement = self.statement_of[index]
            if index == statement.first and index < statement.last:
                self.find_value(index + 1, statement.last)

    # MARK: conditions

    def find_conditions(self, index):
        """The conditions from here to the brace that follows them."""
        start = index
        while index < len(self.tokens):
            token = self.tokens[index]
            if token.text in (",", "{", "else"):
                if index > start:
                    self.find_condition(start, index - 1)
                if token.text != ",":
                    return
                start = index + 1
            if token.kind == "close":
                return
            index = self.pair[index] + 1 if token.kind == "open" else index + 1

    def find_condition(self, first, last):
        words = {self.tokens[index].text for index in range(first, last + 1)}
        if self.tokens[first].text in ("let", "var", "case", "_") or words & {"#available", "#unavailable"}:
            return
        if first == last and self.tokens[first].text in ("true", "false"):
            return
        infix = [self.tokens[index].text for index in self.top(first, last) if self.tokens[index].fixity == "infix"]
        # The same as the mutant that swaps == and !=, or removes !.
        if infix in (["=="], ["!="]) or (not infix and self.is_text(first, "!")):
            return
        self.wrap("condition", "negated", first, last, "mutantNot(NUMBER, ", ")", "!(", ")")

    def top(self, first, last):
        """Tokens that are in no brackets."""
        index = first
        while index <= last:
            yield index
            index = self.pair[index] + 1 if self.tokens[index].kind == "open" else index + 1

    def expression_start(self, index):
        """Where the condition before this question mark begins."""
        while index > 0:
            before = self.tokens[index - 1]
            is_end = before.kind in ("open", "directive") or before.text in BEFORE_EXPRESSION
            is_end = is_end or before.fixity == "infix" and (before.text in ASSIGNMENTS or before.text == "?")
            if is_end or self.tokens[index].is_first and self.source.is_boundary(index - 1, index):
                break
            index = self.pair[index - 1] if before.kind == "close" else index - 1
        return index

    # MARK: values and statements

    def find_value(self, first, last):
        words = [self.tokens[index] for index in range(first, last + 1)]
        if first == last and (words[0].kind in ("number", "string") or words[0].text in ("nil", "true", "false", "self")):
            return
        # No overload of mutantValue takes cases of enumerations, closures, tuples and values of other types.
        if words[0].text in (".", "{", "[", "if", "switch"):
            return
        if words[0].text == "(" and self.source.find(first + 1, self.pair[first], ",") is not None:
            return
        numbers = r"(U?Int(8|16|32|64|128)?|Double|Bool|String|Array|Self)$"
        if words[0].text[0].isupper() and not re.match(numbers, words[0].text) and self.operand_end(first) == last:
            return
        self.wrap("return", "other value", first, last, "mutantValue(NUMBER, ", ")", "another value than (", ")")

    def find_implicit_return(self, statement):
        block = statement.block
        if block.kind == "code" and block.gives_value and len(block.statements) == 1:
            if self.tokens[statement.head].text not in KEYWORDS:
                self.find_value(statement.first, statement.last)

    def find_removable(self, statement):
        block, head = statement.block, self.tokens[statement.head]
        if block.kind not in ("code", "switch", "closure") or head.kind != "word" or head.text in KEYWORDS:
            return
        infix = {self.tokens[index].text for index in self.top(statement.first, statement.last)
                 if self.tokens[index].fixity == "infix"}  # fmt: skip
        is_assignment = bool(infix & ASSIGNMENTS)
        is_call = not infix and self.is_text(statement.last, ")", "}") and self.is_called(statement)
        is_alone = len(block.statements) == 1
        if not is_assignment and (not is_call or is_alone and (block.gives_value or block.kind == "closure")):
            return
        # An initializer has to assign every property.
        if "=" in infix and self.is_in_initializer(block):
            return
        self.wrap("statement", "removed", statement.first, statement.last, "if !mutant(NUMBER) { ", " }", None, None)

    def is_called(self, statement):
        """Whether it calls something that has an effect: reserveCapacity has none."""
        last = statement.last
        name = self.pair[last] - 1 if self.is_text(last, ")") else last
        return not self.is_text(name, "reserveCapacity") and statement.head not in self.skipped

    def is_in_initializer(self, block):
        while block.owner is not None:
            if self.tokens[block.owner.head].text == "init":
                return True
            block = block.owner.block
        return False

    def wrap(self, operator, change, first, last, before, after, shown_before, shown_after):
        """Adds a mutant around tokens that are on one line."""
        start, end = self.tokens[first].start, self.tokens[last].end
        if self.source.line(start) != self.source.line(end - 1) or first in self.skipped:
            return
        shown = [(start, end, "")]
        if shown_before is not None:
            shown = [(start, start, shown_before), (end, end, shown_after)]
        self.add(operator, change, first, last, [(start, start, before), (end, end, after)], shown)

    def add(self, operator, change, first, last, edits, shown, declarations=()):
        source, start = self.source, self.tokens[first].start
        number = source.line(start)
        if isinstance(shown, str):
            shown = [(start, self.tokens[first].end, shown)]
        statement = self.statement_of[first]
        self.found.append(
            Place(
                self.file, number, operator, change, source.line_text(number).strip(),
                changed_line(source, number, shown).strip() or "(nothing)", start, self.tokens[last].end, edits,
                list(declarations), self.lines(statement.first, statement.last), self.body(statement)))  # fmt: skip

    def lines(self, first, last):
        return self.source.line(self.tokens[first].start), self.source.line(self.tokens[last].end - 1)

    def body(self, statement):
        while statement.block.owner is not None and statement.block.kind not in ("type", "file"):
            statement = statement.block.owner
        return self.lines(statement.first, statement.last)


def declared(old, infix):
    """The declarations of the operator of one place."""
    yield f"infix operator MARK: {infix.precedence}Precedence"
    body = infix.body.replace("OTHER", infix.other).replace("OLD", old)
    for attribute, signatures in (("", infix.signatures), ("@_disfavoredOverload ", infix.second)):
        for signature in signatures:
            yield f"{attribute}@_transparent @usableFromInline func MARK {signature} {{ {body} }}"


def increased(text):
    """The number plus 1, or minus 1 for the largest number of some bits."""
    digits = text.replace("_", "").lower()
    if re.fullmatch(r"-[0-9]+", digits):
        return str(int(digits) + 1)
    if re.fullmatch(r"0x[0-9a-f]+|0b[01]+|0o[0-7]+|[0-9]+", digits):
        value = int(digits, 0) if digits[:2] in ("0x", "0b", "0o") else int(digits)
        is_full = value >= 127 and value & (value + 1) == 0
        other = value - 1 if is_full else value + 1
        return hex(other) if digits.startswith("0x") else str(other)
    return f"({text} + 1)"


def changed_line(source, number, edits):
    """The line with those edits that are on it."""
    start = source.lines[number - 1]
    end = start + len(source.line_text(number))
    return changed(source.text, [edit for edit in edits if start <= edit[0] and edit[1] <= end], start, end)


def changed(text, edits, start, end):
    """The text from `start` to `end` with these edits, which are in order."""
    parts, place = [], start
    for first, last, new in edits:
        parts += [text[place:first], new]
        place = last
    return "".join(parts + [text[place:end]])


def places(file, text):
    """All places of a file, in its order."""
    found = Finder(file, text).places()
    found.sort(key=lambda place: (place.start, -place.end, place.operator))
    return found


def in_order(found, seed):
    """All places in random order, operators in turn. Places of one operator keep their order when other lines change."""
    seen = {}
    for place in found:
        name = "\0".join((place.file, place.before, place.operator, place.change))
        seen[name] = seen.get(name, 0) + 1
        place.digest = hashlib.sha256(f"{name}\0{seen[name]}".encode()).hexdigest()
    waiting = {operator: [] for operator in OPERATORS}
    for place in found:
        waiting[place.operator].append(place)
    for group in waiting.values():
        group.sort(key=lambda place: hashlib.sha256(f"{seed}\0{place.digest}".encode()).hexdigest())
    order = []
    while any(waiting.values()):
        order += [group.pop(0) for group in waiting.values() if group]
    return order


def mutated(text, numbered):
    """The file's text with all these mutants, and the line, first and last column of each in it."""
    pieces = []
    for number, place in numbered.items():
        for first, last, new in place.edits:
            filled = filled_in(new, number)
            # At one offset ends come before beginnings, inner ends first, outer beginnings first.
            is_end = first == last == place.end and first != place.start
            order = (first, 0, -place.start, -number) if is_end else (first, 1, -place.end, last > first, number)
            pieces.append((order, first, last, filled, number))
    pieces.sort(key=lambda piece: piece[0])
    parts, at, spans, length = [], 0, {}, 0
    for _, first, last, new, number in pieces:
        kept = text[at:first]
        length += len(kept)
        begin = spans.get(number, (length, length))[0]
        length += len(new)
        spans[number] = (begin, length)
        parts += [kept, new]
        at = last
    result = "".join(parts + [text[at:]])
    return result, {number: columns(result, *span) for number, span in spans.items()}


def columns(text, start, end):
    """The line and the columns, which the compiler counts in bytes."""
    begin = text.rfind("\n", 0, start) + 1
    first = len(text[begin:start].encode()) + 1
    return text.count("\n", 0, start) + 1, first, first + len(text[start:end].encode())


def filled_in(text, number):
    return text.replace("NUMBER", str(number)).replace("MARK", mark(number))


def switch(numbered):
    """The file that has the switch and the operators."""
    lines = [filled_in(line, number) for number, place in numbered.items() for line in place.declarations]
    return SWITCH.replace("MOST", str(max(numbered, default=0))) + "\n" + "\n".join(lines) + "\n"
