"""Where each key of a TOML text stands; tomllib has the values, tree-sitter the lines. Pure."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import tree_sitter_toml
from tree_sitter import Language, Node, Parser

Path = tuple[str | int, ...]

_PUNCTUATION = frozenset(("[", "]", "[[", "]]", ",", "{", "}", "=", ".", "comment"))


@dataclass(frozen=True, slots=True)
class Positions:
    """Lines (from 1) of the keys, tables and list items of a text, by path."""

    lines: Mapping[Path, int]

    def line(self, path: Path) -> int | None:
        """The line of a path, or of the nearest thing around it; None for an empty file."""
        for length in range(len(path), 0, -1):
            if path[:length] in self.lines:
                return self.lines[path[:length]]
        return 1 if self.lines else None

    def reordered(self, origins: Mapping[Path, tuple[int, ...]]) -> Positions:
        """The same for lists of which some items were repeated: which item each one was."""
        lines = dict(self.lines)
        for start, indices in origins.items():
            length = len(start)
            below = {path: line for path, line in lines.items() if path[:length] == start}
            items = {path: line for path, line in below.items() if len(path) > length}
            lines = {path: line for path, line in lines.items() if path not in items}
            for now, was in enumerate(indices):
                for path, line in items.items():
                    if path[length] == was:
                        lines[(*start, now, *path[length + 1 :])] = line
        return Positions(lines)


def find_positions(text: str) -> Positions:
    """The positions in a text that tomllib accepts."""
    parser = Parser(Language(tree_sitter_toml.language()))
    root = parser.parse(text.encode()).root_node
    lines: dict[Path, int] = {}
    for path, line in _document(root):
        lines.setdefault(path, line)
    return Positions(lines)


def _document(root: Node) -> Iterator[tuple[Path, int]]:
    counts: dict[Path, int] = {}
    for node in root.children:
        if node.type == "pair":
            yield from _pair(node, ())
        elif node.type in ("table", "table_array_element"):
            header = next(child for child in node.children if child.type in _KEY_TYPES)
            path = _table_path(_keys(header), counts, new=node.type == "table_array_element")
            yield from _prefixes(path, header)
            for child in node.children:
                if child.type == "pair":
                    yield from _pair(child, path)


_KEY_TYPES = frozenset(("bare_key", "quoted_key", "dotted_key"))


def _table_path(keys: tuple[str, ...], counts: dict[Path, int], *, new: bool) -> Path:
    path: Path = ()
    for depth, key in enumerate(keys):
        path = (*path, key)
        if new and depth == len(keys) - 1:
            counts[path] = counts.get(path, -1) + 1
        if path in counts:
            path = (*path, counts[path])
    return path


def _pair(node: Node, table: Path) -> Iterator[tuple[Path, int]]:
    parts = [child for child in node.children if child.type not in _PUNCTUATION]
    path = (*table, *_keys(parts[0]))
    yield from _prefixes(path, parts[0])
    if len(parts) > 1:
        yield from _value(parts[1], path)


def _value(node: Node, path: Path) -> Iterator[tuple[Path, int]]:
    if node.type == "array":
        items = [child for child in node.children if child.type not in _PUNCTUATION]
        for index, item in enumerate(items):
            yield (*path, index), _line(item)
            yield from _value(item, (*path, index))
    elif node.type == "inline_table":
        for child in node.children:
            if child.type == "pair":
                yield from _pair(child, path)


def _prefixes(path: Path, node: Node) -> Iterator[tuple[Path, int]]:
    for length in range(1, len(path) + 1):
        yield path[:length], _line(node)


def _keys(node: Node) -> tuple[str, ...]:
    if node.type == "dotted_key":
        parts = (_keys(child) for child in node.children if child.type in _KEY_TYPES)
        return tuple(key for part in parts for key in part)
    text = (node.text or b"").decode()
    return tuple(tomllib.loads(f"{text} = 0"))


def _line(node: Node) -> int:
    return node.start_point[0] + 1
