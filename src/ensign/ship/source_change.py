"""A variant as a change of the project's source, and that as a unified diff. Pure.

What changes is what the study's edits say; else, of a Rust program, its release profile in
Cargo.toml and rustflags in .cargo/config.toml, which has what no profile has a word for; else, of a
Debian package, what debian/rules tells dpkg-buildflags.
"""

from __future__ import annotations

import difflib
import json
import posixpath
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ensign.builders.commands import filled
from ensign.model.errors import InputError
from ensign.model.study_build import Edit
from ensign.toolchains.rust import release_profile, rustflags
from ensign.toolchains.table import Flags

PATCH = "change.patch"
_EMPTY = re.compile(r" ?(?<!\$)\{([a-z_]+)\}")
_ENDS = "\r\n"
_MANIFEST = "Cargo.toml"
CARGO_CONFIGURATION = ".cargo/config.toml"
_SECTION = "[profile.release]"
_HEADER = re.compile(r"^[ \t]*\[\s*profile\s*\.\s*release\s*\][ \t]*(?:#.*)?$", re.MULTILINE)
_NEXT = re.compile(r"^[ \t]*\[", re.MULTILINE)
_KEY = r"""^[ \t]*["']?{}["']?[ \t]*=[^\n#]*?(?=[ \t]*(?:#|$))"""
# What Cargo takes where a release profile says nothing.
_DEFAULTS: Mapping[str, object] = {"opt-level": 3, "lto": False, "panic": "unwind"}
_ELSE = "write a [ship] table with the edits"
_ASSIGNMENT = r"^(?:export[ \t]+)?{name}[ \t]*(?:[:+?]|::)?=(?:\\\n|[^\n])*"


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
    edits: Sequence[Edit],
    texts: Mapping[str, str],
    values: Mapping[str, str],
    sources: Sequence[Mapping[str, str]] = (),
) -> SourceChange:
    """Apply the edits to the texts of their files, one after the other; new files have none.

    `sources` have values of their own: those with other flags than the rest.

    EditError where the place of an edit is not there, or there more than once, or a file that is to
    be created is there; InputError where all of them change nothing.
    """
    edited = dict(texts)
    for index, edit in enumerate(edits):
        text = edited.get(edit.file, "")
        own = {**values, "sources": _lines_of(edit, values, sources)}
        if edit.create:
            if edit.file in edited:
                raise EditError(f"the edit does not apply: there is a {edit.file} already", index)
            text = _filled(edit.replace, own)
        elif edit.file not in edited:
            missing = f"the edit does not apply: the source has no file '{edit.file}'"
            raise EditError(missing, index)
        elif edit.line is not None:
            text = _line_replaced(edit, index, text, _filled(edit.replace, own))
        else:
            literal = {name: value.replace("\\", r"\\") for name, value in own.items()}
            text = _match_replaced(edit, index, text, _filled(edit.replace, literal))
        edited[edit.file] = text
    return changed_texts(texts, edited)


def _lines_of(edit: Edit, values: Mapping[str, str], sources: Sequence[Mapping[str, str]]) -> str:
    """A line for each of the sources, where the edit says how one is written."""
    written = edit.each_source
    if written is None:
        return ""
    return "".join(f"{filled(written, {**values, **source}, 'ship.edits')}\n" for source in sources)


def changed_texts(texts: Mapping[str, str], edited: Mapping[str, str]) -> SourceChange:
    """Differences between these texts of files. InputError where there are none."""
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
    numbers = [number for number, line in enumerate(lines) if line.rstrip() == wanted]
    if len(numbers) != 1:
        near = difflib.get_close_matches(wanted, [line.rstrip() for line in lines], 1)
        hint = ""
        if near and not numbers:
            number = next(n for n, line in enumerate(lines, 1) if line.rstrip() == near[0])
            hint = f"; nearest is line {number}, '{near[0]}'"
        raise _misplaced(edit, index, f"the line '{wanted}'{hint}", [n + 1 for n in numbers])
    ending = lines[numbers[0]][len(lines[numbers[0]].rstrip(_ENDS)) :]
    lines[numbers[0]] = replacement + ending
    return "".join(lines)


def _match_replaced(edit: Edit, index: int, text: str, replacement: str) -> str:
    pattern = re.compile(edit.pattern or "", re.MULTILINE)
    matches = list(pattern.finditer(text))
    if len(matches) != 1:
        places = [text.count("\n", 0, match.start()) + 1 for match in matches]
        raise _misplaced(edit, index, f"a match of '{edit.pattern}'", places)
    match = matches[0]
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


def cargo_change(folder: str, texts: Mapping[str, str], host: str, flags: Flags) -> SourceChange:
    """Text of the release profile, and of Cargo's configuration in the folder of the build.

    InputError where one of them cannot be edited, or nothing changes.
    """
    manifest = workspace_manifest(folder, texts)
    own = texts.get(CARGO_CONFIGURATION, "")
    after = {**texts, manifest: with_profile(manifest, texts[manifest], flags)}
    configured = with_rustflags(own, host, flags)
    if configured != own:
        after[CARGO_CONFIGURATION] = configured
    return changed_texts(texts, after)


def workspace_manifest(folder: str, texts: Mapping[str, str]) -> str:
    """The manifest whose profiles Cargo reads for the package in `folder`, of those in `texts`.

    InputError where there is none.
    """
    own = posixpath.normpath(posixpath.join(folder, _MANIFEST))
    if own not in texts:
        raise InputError(f"the source has no {own}")
    named = _toml_of(own, texts[own]).get("package")
    above = named.get("workspace") if isinstance(named, dict) else None
    if isinstance(above, str):
        root = posixpath.normpath(posixpath.join(folder, above, _MANIFEST))
        return root if root in texts else own
    for place in manifests_of(folder):
        if place in texts and "workspace" in _toml_of(place, texts[place]):
            return place
    return own


def manifests_of(folder: str) -> tuple[str, ...]:
    """Places of manifests of the package and of its workspace, the nearest first."""
    parts = [part for part in posixpath.normpath(folder).split("/") if part != "."]
    return tuple("/".join([*parts[:count], _MANIFEST]) for count in range(len(parts), -1, -1))


def with_profile(name: str, text: str, flags: Flags) -> str:
    """The manifest with the variant's profile: what Cargo does already is not written.

    InputError where the profile is not a section of its own, so that it cannot be edited.
    """
    there = _profile(name, text)
    wanted = release_profile(flags)
    known = {**_DEFAULTS, **there}
    changes = {key: value for key, value in wanted.items() if not _is_same(known.get(key), value)}
    if not changes:
        return text
    match = _HEADER.search(text)
    if match is None:
        if there:
            raise InputError(f"{name} has its release profile in another form; {_ELSE}")
        lines = "".join(f"{key} = {_toml(value)}\n" for key, value in changes.items())
        edited = f"{text.rstrip()}\n\n{_SECTION}\n{lines}".lstrip("\n")
    else:
        following = _NEXT.search(text, match.end())
        end = len(text) if following is None else following.start()
        body = _with_keys(text[match.end() : end], changes)
        edited = f"{text[: match.end()]}{body}{text[end:]}"
    if any(not _is_same(_profile(name, edited).get(key), each) for key, each in changes.items()):
        raise InputError(f"the release profile of {name} cannot be edited; {_ELSE}")
    return edited


def with_rustflags(text: str, host: str, flags: Flags) -> str:
    """Cargo's configuration with the flags that no profile has; `host` is the target triple.

    InputError where the project has flags for that target already.
    """
    words = rustflags(flags)
    if not words:
        return text
    read = _toml_of(CARGO_CONFIGURATION, text)
    target = read.get("target")
    if isinstance(target, dict) and host in target:
        raise InputError(f"{CARGO_CONFIGURATION} has a section for {host} already; {_ELSE}")
    listed = ", ".join(map(_toml, words))
    edited = f"{text.rstrip()}\n\n[target.{host}]\nrustflags = [{listed}]\n".lstrip("\n")
    _toml_of(CARGO_CONFIGURATION, edited)
    return edited


def _with_keys(body: str, changes: Mapping[str, object]) -> str:
    missing: list[str] = []
    for key, value in changes.items():
        spelled = f"{key} = {_toml(value)}"
        line = re.search(_KEY.format(re.escape(key)), body, re.MULTILINE)
        if line is not None:
            body = f"{body[: line.start()]}{spelled}{body[line.end() :]}"
        else:
            missing.append(f"{spelled}\n")
    return f"\n{''.join(missing)}{body.removeprefix(chr(10))}" if missing else body


def _profile(name: str, text: str) -> Mapping[str, object]:
    profile = _toml_of(name, text).get("profile")
    release = profile.get("release") if isinstance(profile, dict) else None
    return release if isinstance(release, dict) else {}


def _toml_of(name: str, text: str) -> dict[str, object]:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{name} cannot be read: {str(error)[:200]}") from None


def _is_same(there: object, wanted: object) -> bool:
    """`lto = true` is fat, and levels are numbers or texts."""
    names = {"True": "fat", "False": "false", "0": "0"}
    was, now = (names.get(str(value), str(value)) for value in (there, wanted))
    return there is not None and was == now


def _toml(value: object) -> str:
    return json.dumps(value)


def debian_variables(flags: Flags, tools: Mapping[str, str]) -> dict[str, str]:
    """Variables of the package, and what each gets more; `tools` are those besides the usual."""
    defined = tuple(flag for flag in flags.compile if flag.startswith(("-D", "-U")))
    by_name: dict[str, Sequence[str]] = {
        "DEB_CPPFLAGS_MAINT_APPEND": defined,
        "DEB_CFLAGS_MAINT_APPEND": flags.compile,
        "DEB_CXXFLAGS_MAINT_APPEND": flags.compile,
        "DEB_LDFLAGS_MAINT_APPEND": flags.link,
    }
    appended = {name: " ".join(words) for name, words in by_name.items() if words}
    return {**tools, **appended}


def with_debian_variables(text: str, more: Mapping[str, str]) -> str:
    """The rules with these variables: each after its last assignment, else at the beginning.

    InputError where a value cannot stand in a makefile.
    """
    lines = []
    for name, value in more.items():
        if "\n" in value or "#" in value:
            raise InputError(f"'{value!a}' cannot stand in debian/rules; leave out these flags")
        escaped = value.replace("$", "$$")
        matches = list(re.finditer(_ASSIGNMENT.format(name=name), text, re.MULTILINE))
        if matches:
            end = matches[-1].end()
            text = f"{text[:end]}\nexport {name} += {escaped}{text[end:]}"
        else:
            lines.append(f"export {name} = {escaped}\n")
    if not lines:
        return text
    head = re.match(r"(?:#[^\n]*\n)*", text)
    at = 0 if head is None else head.end()
    return f"{text[:at]}\n{''.join(lines)}{text[at:]}"
