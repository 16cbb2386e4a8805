"""A source tree as its build system tells of it, once configured, or built.

CMake and Meson are asked. Autotools and make cannot be asked: what they built is looked at.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ensign.builders.open_tree import OpenedTree
from ensign.builders.systems.build_system import (
    BUILD_FOLDER,
    Inspected,
    Recognized,
    SuiteCommand,
    Target,
    TargetKind,
)
from ensign.host.foreign_files import read_foreign
from ensign.host.regular_file import read_json
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
    reply = _object(text, "CMake's file API")
    kind = _CMAKE_KINDS.get(_text(reply.get("type")))
    artifacts = [_text(artifact.get("path")) for artifact in _objects(reply.get("artifacts"))]
    path = _in_tree(artifacts[0], BUILD_FOLDER, "") if artifacts else ""
    if kind is None or not path:
        return None
    return Target(_text(reply.get("name")), kind, path, installed="install" in reply)


def ctest_tests(text: bytes, root: str) -> tuple[SuiteCommand, ...]:
    """Tests that `ctest --show-only=json-v1` lists; `root` was the source folder then."""
    reply = _object(text, "ctest")
    return tuple(_ctest(test, root) for test in _objects(reply.get("tests")) if test.get("command"))


def _ctest(test: Mapping[str, Any], root: str) -> SuiteCommand:
    properties = {
        _text(property_.get("name")): property_.get("value")
        for property_ in _objects(test.get("properties"))
    }
    folder = _text(properties.get("WORKING_DIRECTORY")) or BUILD_FOLDER
    env = (text.partition("=") for text in _texts(properties.get("ENVIRONMENT")))
    return SuiteCommand(
        _text(test.get("name")),
        tuple(_relative(text, root) for text in _texts(test.get("command"))),
        _relative(folder, root),
        tuple((name, _relative(value, root)) for name, _, value in env),
    )


def meson_targets(text: bytes, root: str) -> tuple[Target, ...]:
    """Targets of `intro-targets.json`; `root` was the source folder then."""
    return tuple(_meson_targets(_list(text, "meson introspect --targets"), root))


def _meson_targets(targets: Sequence[Mapping[str, Any]], root: str) -> Iterator[Target]:
    for target in targets:
        kind = _MESON_KINDS.get(_text(target.get("type")))
        files = _texts(target.get("filename"))
        path = _in_tree(files[0], BUILD_FOLDER, root) if files else ""
        if kind is not None and path:
            by_default = target.get("build_by_default") is not False
            installed = target.get("installed") is True
            yield Target(_text(target.get("name")), kind, path, by_default, installed)


def meson_tests(text: bytes, root: str) -> tuple[SuiteCommand, ...]:
    """Tests of `intro-tests.json` or `intro-benchmarks.json`."""
    return tuple(
        SuiteCommand(
            _text(test.get("name")),
            tuple(_relative(word, root) for word in _texts(test.get("cmd"))),
            _relative(_text(test.get("workdir")) or BUILD_FOLDER, root),
            tuple(
                (name, _relative(_text(value), root))
                for name, value in sorted(_mapping(test.get("env")).items())
                # Meson names the folders of its libraries, which are found here anyway.
                if name != "LD_LIBRARY_PATH"
            ),
        )
        for test in _list(text, "meson introspect --tests")
        if _texts(test.get("cmd"))
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
    reply = _read(text, who)
    if not isinstance(reply, dict):
        raise InputError(f"what {who} wrote is not an object")
    return reply


def _list(text: bytes, who: str) -> list[Mapping[str, Any]]:
    reply = _read(text, who)
    if not isinstance(reply, list):
        raise InputError(f"what {who} wrote is not a list")
    return _objects(reply)


def _read(text: bytes, who: str) -> object:
    try:
        return read_json(text)
    except ValueError as error:
        raise InputError(f"what {who} wrote is not JSON: {error}") from None


def _objects(value: object) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _texts(value: object) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


_MOST_BYTES = 2**26
_MOST_TARGETS = 2000
_QUERY = ".cmake/api/v1/query/codemodel-v2"
_REPLIES = ".cmake/api/v1/reply"
_MESON_INFO = "meson-info"
_CTESTS = "CTestTestfile.cmake"
_CTEST = ("ctest", "--test-dir", BUILD_FOLDER, "--show-only=json-v1")


def ask_cmake(opened: OpenedTree) -> None:
    """Make CMake tell of its targets when it configures, which `asked_of` reads."""
    query = opened.tree / BUILD_FOLDER / _QUERY
    query.parent.mkdir(parents=True)
    query.touch()


def asked_of(opened: OpenedTree, recognized: Recognized) -> Inspected:
    """Inspection of a configured or built tree, or else of what the build left.

    InputError, HostileFileError where the files are not what these systems write.
    """
    built = opened.tree / BUILD_FOLDER
    if (built / _REPLIES).is_dir():
        return _cmake(opened, recognized)
    if (built / _MESON_INFO).is_dir():
        return _meson(opened, recognized)
    if (built / _CTESTS).is_file():
        return _with_ctests(opened, recognized, opened.made())
    return Inspected(recognized, opened.made())


def _cmake(opened: OpenedTree, recognized: Recognized) -> Inspected:
    """Inspection by the file API and by ctest, which knows no command of a missing program."""
    replies = sorted((opened.tree / BUILD_FOLDER / _REPLIES).glob("target-*.json"))[:_MOST_TARGETS]
    found = (cmake_target(read_foreign(reply, _MOST_BYTES)) for reply in replies)
    targets = tuple(target for target in found if target is not None)
    _pretend(opened.tree, targets)
    return _with_ctests(opened, recognized, targets)


def _with_ctests(
    opened: OpenedTree, recognized: Recognized, targets: tuple[Target, ...]
) -> Inspected:
    answer = opened.sandbox.temporary / "tests.json"
    outcome = opened.runner.run(_CTEST, stdout=answer)
    if not outcome.ok:
        return Inspected(recognized, targets, notes=(f"ctest {outcome.describe()}",))
    tests = ctest_tests(read_foreign(answer, _MOST_BYTES), opened.seen_as)
    return Inspected(recognized, targets, tests)


def _pretend(tree: Path, targets: Sequence[Target]) -> None:
    for target in targets:
        path = tree / target.path
        if target.kind == "program" and path.parent.resolve().is_relative_to(tree.resolve()):
            path.parent.resolve().mkdir(parents=True, exist_ok=True)
            with suppress(FileExistsError):
                path.touch(mode=0o755, exist_ok=False)


def _meson(opened: OpenedTree, recognized: Recognized) -> Inspected:
    """Inspection by the files that `meson introspect` would print."""
    root = opened.seen_as

    def said(name: str) -> bytes:
        path = opened.tree / BUILD_FOLDER / _MESON_INFO / f"intro-{name}.json"
        return read_foreign(path, _MOST_BYTES)

    targets = meson_targets(said("targets"), root)
    tests = meson_tests(said("tests"), root)
    return Inspected(recognized, targets, tests, meson_tests(said("benchmarks"), root))
