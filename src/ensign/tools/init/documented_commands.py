"""Commands that a project shows its users: in what it says for help, manuals, READMEs, tests. Pure.

Whoever writes these means people, so files have made-up names and much is prose. What is found is
tried, and nothing more is made of it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import PurePosixPath

from ensign.tools.init.attempts import INPUT, OUTPUT, Attempt, Executable, Sample
from ensign.tools.init.made_samples import made_samples

_LONGEST_LINE = 300
_MOST_LINES = 200
_MOST_WORDS = 16
_SAMPLES_EACH = 3
_ROFF_FONT = re.compile(r"\\f(\[\w*\]|\(..|.)|\\[&|^]")
_ROFF_MACRO = re.compile(r"^[.'](B|I|BR|RB|BI|IB|RI|IR|PP|TP|SM|Nm|Ic|Fl|Ar|nf)\b *")
_ROFF_SIGNS = {"\\-": "-", "\\(aq": "'", "\\(dq": '"', "\\e": "\\", "\\ ": " "}
_OPTIONAL = re.compile(r"\[[^][]*\]|\.\.\.")
_PROMPT = re.compile(
    r"^(usage:|or:|e\.?g\.?:?|example:|[$%#>*`-]|\w*[$#])?[\s`]*(time |sudo )?$", re.IGNORECASE
)
_FILE = re.compile(r"^[\w./+-]*[\w+-]\.(?=[a-z0-9]*[a-z])[A-Za-z0-9]{1,6}$")
_FILE_WORDS = frozenset(
    ("file", "files", "filename", "input", "infile", "input_file", "in", "path")
)
_OPTION = re.compile(r"(?:^|[\s,(\[|])(--?[A-Za-z][\w-]*)")
_COMMANDS = re.compile(r"^[ \t]*(?:sub|available )?commands:[ \t]*$", re.MULTILINE | re.IGNORECASE)
_COMMAND = re.compile(r"^(?: {2,8}|\t)([a-z][a-z-]{1,30})(?: {2,}|\t|$)")
_PLAIN_WORD = re.compile(r"^[a-z]+,?$")
_SENTENCE = 3
_MOST_CHOICES = 12
_HARMLESS = re.compile(r"^--?(h|help|v|version|V|usage|license|about)$")


@dataclass(frozen=True, slots=True)
class Shown:
    """A command: words with `{input}` in place of names of files that do not exist.

    `suffix` is what such a name ends with, `path` the file of the source that is named instead.
    """

    words: tuple[str, ...]
    reads_input: bool = False
    suffix: str = ""
    path: str = ""


def options_of(help_text: str) -> list[str]:
    """The options that a help names, without those that tell something and end."""
    options = dict.fromkeys(match[1] for match in _OPTION.finditer(help_text))
    return [option for option in options if not _HARMLESS.match(option)]


def choices_of(help_text: str) -> list[str]:
    """The commands that a help lists, as first words to choose from."""
    choices: dict[str, None] = {}
    heading = _COMMANDS.search(help_text)
    for line in help_text[heading.end() :].splitlines()[1:] if heading else ():
        command = _COMMAND.match(line)
        if command is None:
            break
        choices[command[1]] = None
    return [choice for choice in choices if not _HARMLESS.match(f"-{choice}")][:_MOST_CHOICES]


def plain_text(text: str) -> str:
    """A manual page without its markup; any other text as it is."""
    if not re.search(r"^[.'](TH|SH|Dd)\b", text, re.MULTILINE):
        return text
    text = _ROFF_FONT.sub("", text)
    for sign, meaning in _ROFF_SIGNS.items():
        text = text.replace(sign, meaning)
    lines = (_ROFF_MACRO.sub("", line) for line in text.splitlines())
    return "\n".join(line.strip('"') for line in lines)


def shown_commands(text: str, program: str, files: Collection[str]) -> list[Shown]:
    """The commands of a program in a text. `files` are paths of the source, which may be meant."""
    names = {PurePosixPath(file).name: file for file in files}
    shown: dict[Shown, None] = {}
    lines = plain_text(text).replace("\\\n", " ").splitlines()
    told = (line.strip() for line in lines if program in line and len(line) <= _LONGEST_LINE)
    for line in islice(told, _MOST_LINES):
        shown.update(dict.fromkeys(_in_line(line, program, names)))
    return list(shown)


def is_manual_of(file: str, program: str) -> bool:
    """True if a file is the manual page of a program, by its name."""
    return re.fullmatch(rf"{re.escape(program)}\.[1-8]", PurePosixPath(file).name) is not None


def shown_attempts(
    shown: Shown, program: Executable, samples: Sequence[Sample], every: Sequence[Sample]
) -> Iterator[Attempt]:
    """A command with the files that it may mean; `samples` and `every` have the best first."""
    if not shown.reads_input and INPUT not in shown.words:
        yield Attempt(program, shown.words)
        return
    named = [each for each in every if each.path == shown.path]
    same = [each for each in every if shown.suffix and each.suffix.lower() == shown.suffix]
    made = made_samples(shown.suffix, 1) if shown.suffix and not named and not same else []
    for sample in ([*named, *same, *made] or list(samples))[:_SAMPLES_EACH]:
        yield Attempt(program, shown.words, sample)


def _in_line(line: str, program: str, names: dict[str, str]) -> Iterator[Shown]:
    place = re.compile(rf"(?<![\w.+-])(?:[\w.-]*/)*{re.escape(program)}(?=\s|$)")
    for match in place.finditer(line):
        before = line[: match.start()]
        piped = before.rstrip().endswith("|")
        if not piped and not _PROMPT.match(before):
            continue
        shown = _parsed(line[match.end() :], names, piped=piped)
        if shown is not None:
            yield shown


def _parsed(rest: str, names: dict[str, str], *, piped: bool) -> Shown | None:
    """The words up to what ends a command; None where it is prose, or cannot be read."""
    rest = rest.rstrip("`")
    rest = _OPTIONAL.sub(" ", rest) if "'" not in rest and '"' not in rest else rest
    lexer = shlex.shlex(rest, posix=True, punctuation_chars="|<>;&")
    lexer.whitespace_split = True
    lexer.commenters = "#"
    try:
        tokens = list(lexer)
    except ValueError:
        return None
    words: list[str] = []
    suffix, path, reads = "", "", piped
    for token, following in zip(tokens, [*tokens, ""][1:], strict=True):
        if token.startswith("<"):
            reads = True
            suffix = suffix or PurePosixPath(following).suffix.lower()
            break
        if set(token) <= set("|<>;&") or (token.isdigit() and following.startswith(">")):
            break
        word = _as_word(token, words[-1] if words else "", names)
        if word in names.values() and not path:
            word, path = INPUT, word
        if word == INPUT:
            suffix = suffix or PurePosixPath(token).suffix.lower()
        words.append(word)
    words = _without_prose(words)
    if len(words) > _MOST_WORDS or (not reads and not _is_command(words, rest)):
        return None
    return Shown(tuple(words), reads and INPUT not in words, suffix, path=path)


def _without_prose(words: list[str]) -> list[str]:
    """Words up to the sentence that follows them: three words of letters alone in a row."""
    for at in range(len(words) - _SENTENCE + 1):
        if all(_PLAIN_WORD.match(word) for word in words[at : at + _SENTENCE]):
            return words[:at]
    return words


def _as_word(token: str, before: str, names: dict[str, str]) -> str:
    lower = PurePosixPath(token).name.lower()
    if before in ("-o", "--output", "--out") or (
        lower.startswith("out") and (_FILE.match(token) or lower != token)
    ):
        return OUTPUT + PurePosixPath(token).suffix if not token.startswith("-") else token
    if PurePosixPath(token).name in names and "." in token:
        return names[PurePosixPath(token).name]
    return INPUT if _FILE.match(token) or lower in _FILE_WORDS else token


def _is_command(words: Sequence[str], rest: str) -> bool:
    """True if it is more than the program's name at the start of a sentence."""
    if not words or words[0] in ("-", "--") or _HARMLESS.match(words[0]):
        return False
    marked = any(word.startswith(("-", INPUT, OUTPUT)) or " " in word for word in words)
    return marked and not rest.rstrip().endswith((".", ",", ":"))
