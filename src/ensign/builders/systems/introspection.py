"""What CMake, CTest and Meson say of a configured tree, read from their JSON. Pure.

It was written by programs that run what the project says, so nothing of its shape is taken for
granted: InputError where it is not what these programs write.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ensign.builders.systems.build_system import BUILD_FOLDER
from ensign.builders.systems.targets import SuiteCommand, Target, TargetKind
from ensign.host.json_text import read_json
from ensign.model.errors import InputError

_CMAKE_KINDS: Mapping[str, TargetKind] = {
    "EXECUTABLE": "program",
    "SHARED_LIBRARY": "shared library",
    "MODULE_LIBRARY": "shared library",
}
_MESON_KINDS: Mapping[str, TargetKind] = {
    "executable": "program",
    "shared library": "shared library",
    "shared module": "shared library",
}


def cmake_target(text: bytes) -> Target | None:
    """One reply of CMake's file API about a target; None for what is neither run nor loaded."""
    said = _object(text, "CMake's file API")
    kind = _CMAKE_KINDS.get(_text(said.get("type")))
    artifacts = [_text(each.get("path")) for each in _objects(said.get("artifacts"))]
    path = _in_tree(artifacts[0], BUILD_FOLDER, "") if artifacts else ""
    if kind is None or not path:
        return None
    return Target(_text(said.get("name")), kind, path, installed="install" in said)


def ctest_tests(text: bytes, root: str) -> tuple[SuiteCommand, ...]:
    """What `ctest --show-only=json-v1` lists; `root` is where the source folder was then."""
    said = _object(text, "ctest")
    return tuple(_ctest(each, root) for each in _objects(said.get("tests")) if each.get("command"))


def _ctest(test: Mapping[str, Any], root: str) -> SuiteCommand:
    properties = {
        _text(each.get("name")): each.get("value") for each in _objects(test.get("properties"))
    }
    folder = _text(properties.get("WORKING_DIRECTORY")) or BUILD_FOLDER
    env = (each.partition("=") for each in _texts(properties.get("ENVIRONMENT")))
    return SuiteCommand(
        _text(test.get("name")),
        tuple(_relative(each, root) for each in _texts(test.get("command"))),
        _relative(folder, root),
        tuple((name, _relative(value, root)) for name, _, value in env),
    )


def meson_targets(text: bytes, root: str) -> tuple[Target, ...]:
    """What `intro-targets.json` lists; `root` is where the source folder was then."""
    return tuple(_meson_targets(_list(text, "meson introspect --targets"), root))


def _meson_targets(targets: Sequence[Mapping[str, Any]], root: str) -> Iterator[Target]:
    for each in targets:
        kind = _MESON_KINDS.get(_text(each.get("type")))
        files = _texts(each.get("filename"))
        path = _in_tree(files[0], BUILD_FOLDER, root) if files else ""
        if kind is not None and path:
            by_default = each.get("build_by_default") is not False
            installed = each.get("installed") is True
            yield Target(_text(each.get("name")), kind, path, by_default, installed)


def meson_tests(text: bytes, root: str) -> tuple[SuiteCommand, ...]:
    """What `intro-tests.json` or `intro-benchmarks.json` lists."""
    return tuple(
        SuiteCommand(
            _text(each.get("name")),
            tuple(_relative(word, root) for word in _texts(each.get("cmd"))),
            _relative(_text(each.get("workdir")) or BUILD_FOLDER, root),
            tuple(
                (name, _relative(_text(value), root))
                for name, value in sorted(_mapping(each.get("env")).items())
                # Meson names the folders of its libraries, which are found here anyway.
                if name != "LD_LIBRARY_PATH"
            ),
        )
        for each in _list(text, "meson introspect --tests")
        if _texts(each.get("cmd"))
    )


def _relative(path: str, root: str) -> str:
    """A path in the tree as seen from the source folder; anything else as it is."""
    if root and (path == root or path.startswith(f"{root}/")):
        return posixpath.relpath(path, root)
    return path


def _in_tree(path: str, folder: str, root: str) -> str:
    """The same of an artifact, relative ones being in `folder`; empty where it lies outside."""
    inside = posixpath.normpath(posixpath.join(folder, _relative(path, root)))
    if root and path.startswith(f"{root}/"):
        inside = posixpath.relpath(path, root)
    return "" if inside.startswith(("/", "..")) else inside


def _object(text: bytes, who: str) -> Mapping[str, Any]:
    said = _read(text, who)
    if not isinstance(said, dict):
        raise InputError(f"what {who} wrote is not an object")
    return said


def _list(text: bytes, who: str) -> list[Mapping[str, Any]]:
    said = _read(text, who)
    if not isinstance(said, list):
        raise InputError(f"what {who} wrote is not a list")
    return _objects(said)


def _read(text: bytes, who: str) -> object:
    try:
        return read_json(text)
    except ValueError as error:
        raise InputError(f"what {who} wrote is not JSON: {error}") from None


def _objects(value: object) -> list[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _texts(value: object) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
