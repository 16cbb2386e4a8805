"""Values in messages, as they were written; texts of strangers, safe to show. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

_LONGEST = 200
_DEEPEST = 4
_CUT = "…"
# Controls (with ESC, which begins commands to a terminal), marks that turn the direction of text or
# cannot be seen, halves of characters, separators that some take for the end of a line.
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
# Nothing to look at in most texts: what may have to be shown otherwise is rare.
_SUSPECT = re.compile(r"[^\x20-\x7e\xa1-\xac\xae-\u02ff\u2010-\u2027\u2030-\u205e]")


def visible(text: str) -> str:
    r"""One line of text for a terminal; what is not to be seen in it is shown: `\x1b`, `\u202e`."""
    return _SUSPECT.sub(_escaped, text)


def visible_lines(text: str) -> str:
    """As `visible`, for a text of several lines: line ends and tabs stay."""
    lines = text.replace("\r\n", "\n").split("\n")
    return "\n".join("\t".join(map(visible, line.split("\t"))) for line in lines)


def json_visible(text: str) -> str:
    """JSON of the same meaning, with nothing in its texts that could not be seen."""
    return _SUSPECT.sub(_as_json, text)


def _as_json(match: re.Match[str]) -> str:
    character = match[0]
    if character == "\n" or unicodedata.category(character) not in _HIDDEN:
        return character
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def _escaped(match: re.Match[str]) -> str:
    character = match[0]
    if unicodedata.category(character) not in _HIDDEN:
        return character
    number = ord(character)
    if number <= 0xFF:  # noqa: PLR2004  # what two digits hold
        return {"\n": "\\n", "\r": "\\r", "\t": "\\t"}.get(character, f"\\x{number:02x}")
    return f"\\u{number:04x}" if number <= 0xFFFF else f"\\U{number:08x}"  # noqa: PLR2004


def quoted(value: object) -> str:
    """A value as TOML or JSON would have it: texts in quotes, their backslashes as they are.

    What cannot be printed is escaped; of what is long or nested deeply, the beginning is given.
    """
    return shortened(_quoted(value, _DEEPEST))


def shortened(text: str, most: int = _LONGEST) -> str:
    """The beginning of a long text."""
    return text if len(text) <= most else f"{text[: most - 1]}{_CUT}"


def distinct_short(texts: Sequence[str], most: int) -> tuple[str, ...]:
    """Different texts, cut to `most` characters and still different where that can be.

    A text is cut at a comma or a blank near the end, or else before the place where it differs.
    """
    begun = [_begun(text, most) for text in texts]
    alike = ([other for other, its in zip(texts, begun, strict=True) if its == b] for b in begun)
    return tuple(
        _begun(_from_where_they_differ(text, those, most), most) if len(those) > 1 else short
        for text, those, short in zip(texts, alike, begun, strict=True)
    )


def _from_where_they_differ(text: str, alike: Sequence[str], most: int) -> str:
    columns = zip(*alike, strict=False)
    same = next((n for n, column in enumerate(columns) if len({*column}) > 1), 0)
    start = min(same - 2, len(text) - most + 1)
    return f"{_CUT}{text[start:]}" if start > 0 else text


def _begun(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    head = text[: most - 1]
    end = max(head.rfind(","), head.rfind(" "))
    return f"{head[: end + 1].rstrip(' ') if end >= most // 2 else head}{_CUT}"


def _quoted(value: object, depth: int) -> str:  # noqa: PLR0911  # one per kind of value
    match value:
        case _ if depth < 0:
            return _CUT
        case bool():
            return str(value).lower()
        case str():
            plain = "".join(
                character if character.isprintable() else repr(character)[1:-1]
                for character in shortened(value)
            )
            return f"'{plain}'"
        case list() | tuple():
            parts = (_quoted(each, depth - 1) for each in value[:_LONGEST])
            return f"[{', '.join(parts)}]"
        case dict():
            items = list(value.items())[:_LONGEST]
            pairs = (f"{_quoted(key, depth)}: {_quoted(item, depth - 1)}" for key, item in items)
            return f"{{{', '.join(pairs)}}}"
        case int() if value.bit_length() > _LONGEST:
            return _CUT  # its digits alone may be more than Python writes
        case _:
            return str(value)
