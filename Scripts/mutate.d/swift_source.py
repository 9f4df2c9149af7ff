"""Tokens, matching brackets and statements of a Swift source, as far as mutation testing needs them.

Tokens follow the language reference: an operator is as long as possible, and the white space around it makes it infix,
prefix or postfix. `<` and `>` are comparisons only with white space on both sides, as swift-format writes them. A string
is one token with its interpolations. Comments are skipped, and so is everything between `#if` and `#endif`, because
nothing here decides whether it is compiled.
"""

import bisect
import dataclasses

OPERATOR_CHARACTERS = set("/=-+!*%<>&|^~?")
OPENING, CLOSING = {"(": ")", "[": "]", "{": "}"}, {")", "]", "}"}
MODIFIERS = {
    "public", "package", "internal", "private", "fileprivate", "open", "static", "final", "mutating", "nonmutating",
    "override", "convenience", "required", "lazy", "weak", "unowned", "indirect", "nonisolated", "dynamic", "optional",
    "consuming", "borrowing", "isolated", "prefix", "postfix", "infix",
}  # fmt: skip
TYPES = {"struct", "class", "enum", "protocol", "extension", "actor"}
FUNCTIONS = {"func", "init", "deinit", "subscript"}
ACCESSORS = {"get", "set", "willSet", "didSet", "_read", "_modify", "read", "modify", "unsafeAddress"}
CONTROLS = {"if", "guard", "while", "for", "else", "do", "catch", "repeat", "defer", "switch"}
# A statement continues on a line that begins with one of the first, and after a line that ends with one of the second.
CONTINUING, UNFINISHED = {"else", "where", "catch", "as", "is", "in"}, {"else", "where", "as", "is", "in"}


@dataclasses.dataclass(slots=True)
class Token:
    """`kind` is word, attribute, directive, number, string, operator, mark, open or close."""

    kind: str
    text: str
    start: int
    end: int
    is_first: bool  # on its line
    fixity: str = ""  # of an operator


@dataclasses.dataclass(slots=True)
class Block:
    """The statements between two braces. `kind` is file, type, accessors, switch, code or closure."""

    kind: str
    first: int  # its opening brace
    last: int  # its closing brace
    owner: object = None  # the statement that contains it
    gives_value: bool = False  # the body of a function or property with a value
    statements: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass(slots=True)
class Statement:
    """The tokens from `first` to `last`. A label of a switch is a statement of its own."""

    first: int
    last: int
    head: int  # the first token after attributes and modifiers
    block: Block


class SwiftError(Exception):
    """A source that cannot be read."""


class Source:
    """The tokens of a file and its statements."""

    def __init__(self, text):
        self.text = text
        self.lines = [0] + [place + 1 for place, character in enumerate(text) if character == "\n"]
        self.tokens = list(without_conditions(Lexer(text).tokens()))
        self.pair = pairs(self.tokens)
        self.attributes = self.find_attributes()
        self.blocks = []
        self.statements = []
        self.parse(Block("file", -1, len(self.tokens)))

    def line(self, place):
        """The number of the line with this character, from 1."""
        return bisect.bisect_right(self.lines, place)

    def line_text(self, number):
        end = self.lines[number] - 1 if number < len(self.lines) else len(self.text)
        return self.text[self.lines[number - 1] : end]

    def string(self, first, last):
        """The text from one token to another."""
        return self.text[self.tokens[first].start : self.tokens[last].end]

    def is_text(self, index, *texts):
        return 0 <= index < len(self.tokens) and self.tokens[index].text in texts

    def find_attributes(self):
        """The tokens of all attributes and their arguments."""
        found = set()
        for index, token in enumerate(self.tokens):
            if token.kind == "attribute":
                found.add(index)
                after = index + 1
                if self.is_text(after, "(") and self.tokens[after].start == token.end:
                    found.update(range(after, self.pair[after] + 1))
        return found

    # MARK: statements

    def parse(self, block):
        self.blocks.append(block)
        index = block.first + 1
        if block.kind == "closure":
            index = self.after_signature(block)
        while index < block.last:
            if self.tokens[index].text == ";":
                index += 1
                continue
            head = self.head(index, block.last)
            is_label = block.kind == "switch" and self.tokens[head].text in ("case", "default")
            end = self.end_of_label(head, block.last) if is_label else self.end(index, block)
            statement = Statement(index, end, head, block)
            block.statements.append(statement)
            self.statements.append(statement)
            self.parse_blocks(statement)
            index = end + 1

    def head(self, index, limit):
        while index < limit - 1:
            if index in self.attributes:
                index += 1
            elif self.tokens[index].text in MODIFIERS and self.tokens[index + 1].kind in ("word", "attribute"):
                index += 1
            elif self.tokens[index].text in MODIFIERS and self.is_argument_of_modifier(index + 1):
                index = self.pair[index + 1] + 1
            elif self.tokens[index].text == "class" and self.is_text(index + 1, "func", "var"):
                index += 1
            else:
                break
        return index

    def is_argument_of_modifier(self, index):
        """As in `private(set) var`."""
        if not self.is_text(index, "(") or self.pair[index] + 1 >= len(self.tokens):
            return False
        after = self.tokens[self.pair[index] + 1]
        return after.kind == "word" and not after.is_first

    def after_signature(self, block):
        index = block.first + 1
        if self.is_text(index, "for", "switch", "if", "while", "guard", "return", "let", "var"):
            return index
        while index < block.last and not (self.tokens[index].is_first and index > block.first + 1):
            if self.tokens[index].text == "{":
                break
            if self.tokens[index].text == "in":
                return index + 1
            index = self.pair.get(index, index) + 1 if self.tokens[index].kind == "open" else index + 1
        return block.first + 1

    def end_of_label(self, index, limit):
        while index < limit - 1 and self.tokens[index].text != ":":
            index = self.pair[index] + 1 if self.tokens[index].kind == "open" else index + 1
        return index

    def end(self, index, block):
        """The last token of the statement that begins here."""
        is_loop = self.tokens[index].text == "repeat"
        while True:
            is_body = block.kind == "accessors" and self.tokens[index].text == "{"
            if self.tokens[index].kind == "open":
                index = self.pair[index]
            after = index + 1
            if after >= block.last or self.tokens[after].text == ";" or is_body:
                return index
            if self.tokens[after].is_first and self.is_boundary(index, after):
                if not (is_loop and self.tokens[after].text == "while"):
                    return index
            index = after

    def is_boundary(self, before, after):
        """Whether the line break between these two tokens ends a statement."""
        if before in self.attributes:
            return False
        token = self.tokens[before]
        if token.fixity == "infix" or token.text in UNFINISHED or token.text in (",", ":", "."):
            return False
        token = self.tokens[after]
        return token.fixity != "infix" and token.text not in CONTINUING and token.text not in (".", ",", ":", "{")

    def parse_blocks(self, statement):
        index, depth = statement.first, 0
        while index <= statement.last:
            token = self.tokens[index]
            if token.text == "{" and token.kind == "open":
                self.parse(self.block(statement, index, depth))
                index = self.pair[index]
            elif token.kind in ("open", "close"):
                depth += 1 if token.kind == "open" else -1
            index += 1

    def block(self, statement, opening, depth):
        closing, head = self.pair[opening], self.tokens[statement.head].text
        if depth > 0:
            return Block("closure", opening, closing, statement)
        if head in TYPES and self.tokens[statement.head + 1].kind == "word":
            return Block("type", opening, closing, statement)
        if head in FUNCTIONS:
            arrow = self.find(statement.head, opening, "->")
            gives_value = head == "subscript" or (arrow is not None and not self.is_text(arrow + 1, "Void"))
            return self.body(statement, opening, closing, gives_value)
        if head in ACCESSORS and statement.block.kind == "accessors":
            return Block("code", opening, closing, statement, head == "get")
        if head in ("var", "let") and self.find(statement.head, opening, "=") is None:
            return self.body(statement, opening, closing, True)
        return Block(self.kind_by_control(statement, opening), opening, closing, statement)

    def body(self, statement, opening, closing, gives_value):
        first = self.head(opening + 1, closing)
        if self.tokens[first].text in ACCESSORS and self.is_text(first + 1, "{", "}", "(", "set", "throws"):
            return Block("accessors", opening, closing, statement)
        return Block("code", opening, closing, statement, gives_value)

    def kind_by_control(self, statement, opening):
        index = opening - 1
        while index >= statement.first:
            token = self.tokens[index]
            if token.text == "}":
                return "closure"
            if token.kind == "close":
                index = self.pair[index]
            elif token.text in CONTROLS and not self.is_text(index - 1, "."):
                return "switch" if token.text == "switch" else "code"
            index -= 1
        return "closure"

    def find(self, first, limit, text):
        """The first token with this text outside brackets."""
        index = first
        while index < limit:
            if self.tokens[index].text == text:
                return index
            index = self.pair[index] + 1 if self.tokens[index].kind == "open" else index + 1
        return None


def pairs(tokens):
    """Maps each bracket to its counterpart."""
    pair, waiting = {}, []
    for index, token in enumerate(tokens):
        if token.kind == "open":
            waiting.append(index)
        elif token.kind == "close":
            if not waiting or OPENING[tokens[waiting[-1]].text] != token.text:
                raise SwiftError(f"'{token.text}' at offset {token.start} closes nothing")
            opening = waiting.pop()
            pair[opening], pair[index] = index, opening
    if waiting:
        raise SwiftError(f"'{tokens[waiting[-1]].text}' at offset {tokens[waiting[-1]].start} is not closed")
    return pair


def without_conditions(tokens):
    """The tokens outside `#if`."""
    depth = 0
    for token in tokens:
        if token.text == "#if":
            depth += 1
        elif token.text == "#endif":
            depth -= 1
        elif depth == 0:
            yield token


class Lexer:
    def __init__(self, text):
        self.text, self.place = text, 0

    def tokens(self):
        is_first = True
        while True:
            before = self.place
            self.skip_space()
            is_first = is_first or "\n" in self.text[before : self.place]
            if self.place >= len(self.text):
                return
            start = self.place
            kind = self.next()
            fixity = self.fixity(start, self.place) if kind == "operator" else ""
            yield Token(kind, self.text[start : self.place], start, self.place, is_first, fixity)
            is_first = False

    def skip_space(self):
        text = self.text
        while self.place < len(text):
            if text[self.place].isspace():
                self.place += 1
            elif text.startswith("//", self.place) or text.startswith("#!", self.place) and self.place == 0:
                end = text.find("\n", self.place)
                self.place = len(text) if end < 0 else end
            elif text.startswith("/*", self.place):
                self.skip_comment()
            else:
                return

    def skip_comment(self):
        depth = 0
        while self.place < len(self.text):
            two = self.text[self.place : self.place + 2]
            depth += {"/*": 1, "*/": -1}.get(two, 0)
            self.place += 2 if two in ("/*", "*/") else 1
            if depth == 0:
                return

    def next(self):
        """Advances past the next token and returns its kind."""
        text, character = self.text, self.text[self.place]
        following = text[self.place + 1 : self.place + 2]
        if character == '"':
            self.skip_string(0)
            return "string"
        if character == "#":
            count = len(text[self.place :]) - len(text[self.place :].lstrip("#"))
            if text.startswith('"', self.place + count):
                self.place += count
                self.skip_string(count)
                return "string"
            if text.startswith("/", self.place + count):
                self.place = self.after(text.find("/" + "#" * count, self.place + count + 1), count + 1)
                return "string"
            self.place += 1
            self.skip_word()
            return "directive"
        if character == "@":
            self.place += 1
            self.skip_word()
            return "attribute"
        if character == "`":
            self.place = self.after(text.find("`", self.place + 1), 1)
            return "word"
        if character.isdigit():
            self.skip_number()
            return "number"
        if character.isidentifier() or character == "$":
            self.skip_word()
            return "word"
        if character in OPENING or character in CLOSING:
            self.place += 1
            return "open" if character in OPENING else "close"
        if character == "/" and self.skip_regex():
            return "string"
        if character in OPERATOR_CHARACTERS or (character == "." and following == "."):
            has_dots = character == "."
            while self.place < len(text) and (
                text[self.place] in OPERATOR_CHARACTERS or (has_dots and text[self.place] == ".")
            ):
                if text.startswith(("//", "/*"), self.place):
                    break
                self.place += 1
            return "operator"
        self.place += 1
        return "mark"

    def after(self, found, length):
        return len(self.text) if found < 0 else found + length

    def skip_word(self):
        text = self.text
        while self.place < len(text) and (text[self.place].isalnum() or text[self.place] in "_$"):
            self.place += 1

    def skip_number(self):
        text = self.text
        is_hexadecimal = text.startswith("0x", self.place)
        while self.place < len(text):
            character = text[self.place]
            is_exponent = character in "+-" and text[self.place - 1] in ("pP" if is_hexadecimal else "eE")
            is_point = character == "." and text[self.place + 1 : self.place + 2].isdigit()
            if not (character.isalnum() or character == "_" or is_exponent or is_point):
                return
            self.place += 1

    def skip_string(self, hashes):
        """Advances past a string; an interpolation may contain strings itself."""
        text = self.text
        quote = '"""' if text.startswith('"""', self.place) else '"'
        self.place += len(quote)
        closing, escape = quote + "#" * hashes, "\\" + "#" * hashes
        while self.place < len(text):
            if text.startswith(closing, self.place):
                self.place += len(closing)
                return
            if text.startswith(escape, self.place):
                self.place += len(escape)
                if text.startswith("(", self.place):
                    self.skip_interpolation()
                else:
                    self.place += 1
            elif text[self.place] == "\n" and quote == '"':
                raise SwiftError(f"the string that ends at offset {self.place} is not closed")
            else:
                self.place += 1

    def skip_interpolation(self):
        depth = 0
        while True:
            self.skip_space()
            if self.place >= len(self.text):
                return
            character = self.text[self.place]
            self.next()
            depth += {"(": 1, ")": -1}.get(character, 0)
            if depth == 0:
                return

    def skip_regex(self):
        """Advances past a regular expression, which begins like a prefix operator and ends on its line."""
        if self.is_spaced_after(self.place + 1) or not self.is_spaced_before(self.place):
            return False
        end = self.text.find("/", self.place + 1)
        line_end = self.text.find("\n", self.place)
        if end < 0 or (0 <= line_end < end):
            return False
        self.place = end + 1
        return True

    def is_spaced_before(self, place):
        return place == 0 or self.text[place - 1].isspace() or self.text[place - 1] in "([{,;:"

    def is_spaced_after(self, place):
        return place >= len(self.text) or self.text[place].isspace() or self.text[place] in ")]},;:"

    def fixity(self, start, end):
        before, after = self.is_spaced_before(start), self.is_spaced_after(end)
        if self.text[start:end] in ("?", "!") and not before:
            return "postfix"
        if before == after:
            # Without spaces only ranges are infix; everything else belongs to generics.
            return "infix" if before or self.text[start:end] in ("..<", "...") else "bracket"
        return "postfix" if after else "prefix"
