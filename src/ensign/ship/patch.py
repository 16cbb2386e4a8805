"""A study's edits as a unified diff against the pristine source. Pure."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ensign.builders.commands import filled
from ensign.model.errors import InputError
from ensign.model.study_build import Edit

NAME = "change.patch"
_EMPTY = re.compile(r" ?(?<!\$)\{([a-z_]+)\}")
_ENDS = "\r\n"


class EditError(InputError):
    """An edit that does not apply; `index` counts the study's edits from 0."""

    def __init__(self, text: str, index: int) -> None:
        super().__init__(text)
        self.index = index


@dataclass(frozen=True, slots=True)
class SourceChange:
    """The text of each file that changes, by its path in the source, and all of it as a diff."""

    files: Mapping[str, str]
    diff: str


def change(
    edits: Sequence[Edit], texts: Mapping[str, str], values: Mapping[str, str]
) -> SourceChange:
    """Apply the edits to the texts of their files, one after the other; new files have none.

    EditError where the place of an edit is not there, or there more than once, or a file that is to
    be created is there; InputError where all of them change nothing.
    """
    edited = dict(texts)
    for index, edit in enumerate(edits):
        text = edited.get(edit.file, "")
        if edit.create:
            if edit.file in edited:
                raise EditError(f"the edit does not apply: there is a {edit.file} already", index)
            text = _filled(edit.replace, values)
        elif edit.file not in edited:
            missing = f"the edit does not apply: the source has no file '{edit.file}'"
            raise EditError(missing, index)
        elif edit.line is not None:
            text = _line_replaced(edit, index, text, _filled(edit.replace, values))
        else:
            literal = {name: value.replace("\\", r"\\") for name, value in values.items()}
            text = _match_replaced(edit, index, text, _filled(edit.replace, literal))
        edited[edit.file] = text
    return changed_texts(texts, edited)


def changed_texts(texts: Mapping[str, str], edited: Mapping[str, str]) -> SourceChange:
    """What differs between these texts of files. InputError where nothing does."""
    changed = {name: text for name, text in sorted(edited.items()) if text != texts.get(name)}
    if not changed:
        raise InputError("the edits of [ship] change nothing for this variant")
    return SourceChange(
        changed, "".join(_diff(name, texts.get(name), changed[name]) for name in changed)
    )


def _filled(text: str, values: Mapping[str, str]) -> str:
    """Filled; a placeholder of nothing takes the blank before it along."""

    def without_blank(match: re.Match[str]) -> str:
        return "" if values.get(match[1]) == "" else match[0]

    return filled(_EMPTY.sub(without_blank, text), values, "ship.edits")


def _line_replaced(edit: Edit, index: int, text: str, replacement: str) -> str:
    lines = _lines(text)
    wanted = (edit.line or "").rstrip()
    found = [number for number, line in enumerate(lines) if line.rstrip() == wanted]
    if len(found) != 1:
        near = difflib.get_close_matches(wanted, [line.rstrip() for line in lines], 1)
        hint = ""
        if near and not found:
            number = next(n for n, line in enumerate(lines, 1) if line.rstrip() == near[0])
            hint = f"; nearest is line {number}, '{near[0]}'"
        raise _misplaced(edit, index, f"the line '{wanted}'{hint}", [n + 1 for n in found])
    ending = lines[found[0]][len(lines[found[0]].rstrip(_ENDS)) :]
    lines[found[0]] = replacement + ending
    return "".join(lines)


def _match_replaced(edit: Edit, index: int, text: str, replacement: str) -> str:
    pattern = re.compile(edit.pattern or "", re.MULTILINE)
    found = list(pattern.finditer(text))
    if len(found) != 1:
        places = [text.count("\n", 0, match.start()) + 1 for match in found]
        raise _misplaced(edit, index, f"a match of '{edit.pattern}'", places)
    match = found[0]
    try:
        expanded = match.expand(replacement)
    except (re.error, IndexError) as error:
        raise EditError(f"'replace' of the edit of {edit.file}: {error}", index) from None
    return text[: match.start()] + expanded + text[match.end() :]


def _misplaced(edit: Edit, index: int, what: str, lines: Sequence[int]) -> EditError:
    if not lines:
        return EditError(f"the edit does not apply: {edit.file} has not {what}", index)
    places = ", ".join(map(str, lines))
    text = f"the edit is ambiguous: {edit.file} has {what} {len(lines)} times, in lines {places}"
    return EditError(text, index)


def _diff(name: str, before: str | None, after: str) -> str:
    was = "/dev/null" if before is None else f"a/{name}"
    lines = difflib.unified_diff(_lines(before or ""), _lines(after), was, f"b/{name}")
    return "".join(_ended(line) for line in lines)


def _lines(text: str) -> list[str]:
    """Split at line feeds alone, as patch does; other separators are part of a line."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _ended(line: str) -> str:
    return line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
