"""What is in the pages: fenced blocks, links, and code between backticks."""

import dataclasses
import pathlib
import re
import shlex

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

# What stands behind the backticks that open a block; docs/README.md says what each means.
KINDS = {"sh": {"run", "simulated", "manual"}, "yaml": {"fusefile", "part", "rules"},
         "text": {"", "output"}, "json": {""}}


@dataclasses.dataclass
class Block:
    page: str
    line: int
    language: str
    kind: str
    code: int  # what its last command exits with
    text: str

    @property
    def name(self):
        return f"{self.page}:{self.line}"

    @property
    def first(self):
        """Its first line that is no comment."""
        return next(line for line in self.text.splitlines() if not line.startswith("#"))


class MalformedPage(Exception):
    pass


def name_of(path):
    return str(path.relative_to(ROOT))


def block_of(page, number, words, text):
    language, kind, code = words[0] if words else "", "", 0
    for word in words[1:]:
        if word.startswith("exit="):
            code = int(word.removeprefix("exit="))
        else:
            kind = word
    if kind not in KINDS.get(language, ()):
        raise MalformedPage(f"{page}:{number}: a block marked {' '.join(words)!r}")
    return Block(page, number, language, kind, code, text)


def blocks_in(path):
    """The fenced blocks of a page, in order."""
    blocks, begin, words, lines = [], 0, [], []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line.startswith("```"):
            lines.append(line)
        elif begin:
            blocks.append(block_of(name_of(path), begin, words, "\n".join(lines) + "\n"))
            begin = 0
        else:
            begin, words, lines = number, line[3:].split(), []
    if begin:
        raise MalformedPage(f"{path}:{begin}: a block without an end")
    return blocks


def all_blocks():
    return [block for path in PAGES for block in blocks_in(path)]


def prose_of(path):
    """A page without its fenced blocks."""
    return re.sub(r"^```.*?^```$", "", path.read_text(), flags=re.MULTILINE | re.DOTALL)


def spans_in(path):
    """What is between backticks in a page's text and tables."""
    return [" ".join(span.split()) for span in re.findall(r"`([^`]+)`", prose_of(path))]


def anchors_of(path):
    """What `PAGE#...` may name: its headings, as GitHub spells them."""
    anchors, seen = set(), {}
    for heading in re.findall(r"^#+ (.*)$", prose_of(path), re.MULTILINE):
        text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()
        anchor = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
        again = seen.get(anchor, 0)
        seen[anchor] = again + 1
        anchors.add(f"{anchor}-{again}" if again else anchor)
    return anchors


def links_in(path):
    return re.findall(r"\]\(([^)\s]+)\)", prose_of(path))


def table_rows(path, heading, number=0):
    """The cells of each row of a table below a heading: the first, unless said."""
    section = re.search(rf"^#+ {re.escape(heading)}$(.*?)(?=^#|\Z)", path.read_text(),
                        re.MULTILINE | re.DOTALL).group(1)
    table = re.findall(r"(?:^\|.*\n)+", section, re.MULTILINE)[number]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
            for line in table.splitlines()[2:]]


def commands_in(text):
    """The words of each `fuse ...` in shell text."""
    found = []
    text = text.replace("\\\n", " ")
    for line in text.splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars=";|&<>()")
        lexer.whitespace_split = True
        lexer.commenters = "#"
        try:
            words = list(lexer)
        except ValueError:
            continue  # a text over several lines
        while "fuse" in words:
            words = words[words.index("fuse") + 1:]
            end = next((i for i, word in enumerate(words) if set(word) <= set(";|&<>()")),
                       len(words))
            found.append(words[:end])
    return found
