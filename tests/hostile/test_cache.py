"""What writes to the cache besides ensign changes nothing of what a study uses or says."""

from __future__ import annotations

import json
import os
import stat
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from build_fixtures import cache, ports, processes, project
from ensign.builders.build import build_variants
from ensign.builders.request import BuildPorts
from ensign.experiment.study import prepare
from ensign.host.cache import Cache, key_of
from ensign.host.entry import seal_of
from ensign.host.files import file_sha256, tree_sha256
from ensign.host.processes import Outcome, ProcessRequest
from ensign.model.errors import CommandFailed
from ensign.model.study_source import ArchiveSource, PathSource
from ensign.sources.obtain import SourcePorts, obtain
from found_compilers import compilers_found_once, found_compilers
from real_processes import PlainProcesses, WithoutNamespaces
from small_studies import GCC_O2, GCC_O3, request

__all__ = ["cache", "compilers_found_once", "found_compilers", "ports", "processes", "project"]

SOURCE = PathSource(kind="path", path="source")


def overwrite(path: Path, data: bytes) -> None:
    path.parent.chmod(0o755)
    path.chmod(0o644)
    path.write_bytes(data)


def entry_of(cache: Cache, kind: str) -> Path:
    (found,) = (cache.folder / "entries").glob(f"{kind}-*")
    return found


def reseal(entry: Path, change: Callable[[dict[str, object]], None]) -> None:
    """As somebody does who knows how ensign records what is in an entry."""
    said = json.loads((entry / "meta.json").read_text())
    del said["seal"]
    change(said)
    (entry / "meta.json").write_text(json.dumps({**said, "seal": seal_of(said)}))


def source_ports(cache: Cache) -> SourcePorts:
    return SourcePorts(PlainProcesses(), cache, dict(os.environ))


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("forged", [False, True])
def test_a_source_that_another_study_changed_is_put_aside_and_fetched_again(
    tmp_path: Path, *, forged: bool
) -> None:
    study = tmp_path / "small.toml"
    with Cache(tmp_path / "cache") as cache:
        tree = obtain(SOURCE, study, source_ports(cache), update_lock=False)
        right = (tree.tree / "main.c").read_bytes()
        entry = entry_of(cache, "source")
        overwrite(tree.tree / "main.c", right + b"/* faster */\n")
        if forged:
            reseal(entry, lambda said: said.update(contents={"tree": tree_sha256(entry / "tree")}))
    with Cache(tmp_path / "cache") as cache:
        again = obtain(SOURCE, study, source_ports(cache), update_lock=False)
        assert (again.tree / "main.c").read_bytes() == right
        assert again.sha256 == tree.sha256 == tree_sha256(again.tree)
        (said,) = cache.replaced()
        assert "\n" not in said
        assert "'tree' was changed (last written: 'main.c')" in said
        (aside,) = (cache.folder / "quarantine").iterdir()
        assert b"faster" in (aside / "tree/main.c").read_bytes()
        assert cache.replaced() == ()


def test_a_download_that_was_changed_is_fetched_again(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d/main.c").write_text("int main(void) { return 0; }\n")
    archive = tmp_path / "d.tar"
    subprocess.run(["tar", "-cf", str(archive), "-C", str(tmp_path), "d"], check=True)
    source = ArchiveSource(kind="archive", url="d.tar", sha256=file_sha256(archive))
    with Cache(tmp_path / "cache") as cache:
        obtain(source, tmp_path / "s.toml", source_ports(cache), update_lock=False)
        overwrite(entry_of(cache, "download") / "file", archive.read_bytes() + b"more")
        overwrite(entry_of(cache, "source") / "tree/main.c", b"int main(void) { return 1; }\n")
    with Cache(tmp_path / "cache") as cache:
        tree = obtain(source, tmp_path / "s.toml", source_ports(cache), update_lock=False)
        assert (tree.tree / "main.c").read_text() == "int main(void) { return 0; }\n"
        assert len(cache.replaced()) == 2


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(
    "harm",
    [
        lambda entry: overwrite(entry / "files/program", b"#!/bin/sh\n"),
        lambda entry: overwrite(entry / "log.txt", b""),
        lambda entry: (entry / "files").chmod(0o755) or (entry / "files/program").unlink(),
        lambda entry: (entry / "files/more").write_text("") if not (entry / "files").chmod(0o755)
        else None,
        lambda entry: (entry / "more").symlink_to("/etc/passwd"),
    ],
    ids=["program", "log", "removed", "added", "link"],
)  # fmt: skip
def test_a_program_that_was_changed_is_built_again(
    tmp_path: Path, ports: BuildPorts, harm: Callable[[Path], object]
) -> None:
    first = build_variants(request(tmp_path, GCC_O2), ports)
    ports.cache.close()
    harm(entry_of(ports.cache, "program"))
    with Cache(ports.cache.folder) as cache:
        again = build_variants(request(tmp_path, GCC_O2), replace(ports, cache=cache))
        assert len(cache.replaced()) == 1
        assert again.results[0].facts.status == "built"
        assert again.results[0].facts.loadable_sha256 == first.results[0].facts.loadable_sha256
        assert again.results[0].artifact is not None
        out = subprocess.run([again.results[0].artifact], capture_output=True, check=True)
        assert out.stdout.startswith(b"sum 376")


@pytest.mark.usefixtures("project")
def test_facts_that_were_edited_are_no_facts(tmp_path: Path, ports: BuildPorts) -> None:
    build_variants(request(tmp_path, GCC_O2), ports)
    ports.cache.close()
    meta = entry_of(ports.cache, "program") / "meta.json"
    meta.write_text(meta.read_text().replace("-O2", "-O3"))
    with Cache(ports.cache.folder) as cache:
        again = build_variants(request(tmp_path, GCC_O2), replace(ports, cache=cache))
        assert again.results[0].facts.status == "built"
        assert not any("-O3" in line for line in again.results[0].facts.evidence)


def harmful(tmp_path: Path, what: str) -> dict[str, object]:
    """A build that does something to the cache, if it is not the first one; only once."""
    script = f'[ ! -e "$MARK.1" ] || [ -e "$MARK.2" ] || {{ {what}; }}; [ ! -e "$MARK.1" ] || touch "$MARK.2"; touch "$MARK.1"'  # noqa: E501
    make = ["make", "-j{jobs}", "CC={cc}", "AR={ar}", "CFLAGS={cflags}", "LDFLAGS={ldflags}"]
    return {
        "commands": [["sh", "-c", script], [*make, "program"]],
        "tools": {},
        "tool_commands": [],
        "env": {"ENTRIES": str(tmp_path / "cache/entries"), "MARK": str(tmp_path / "mark")},
    }


@pytest.fixture
def unconfined(ports: BuildPorts) -> BuildPorts:
    return replace(ports, processes=WithoutNamespaces())


@pytest.mark.usefixtures("project")
def test_a_build_that_edits_the_cached_source_where_nothing_confines_it(
    tmp_path: Path, unconfined: BuildPorts
) -> None:
    edit = 'for f in "$ENTRIES"/source-*/tree/main.c; do chmod -R u+w "$ENTRIES"; echo "#error" >> "$f"; done'  # noqa: E501
    after = replace(GCC_O2, name="after", flags="-fno-inline")
    build = {**harmful(tmp_path, edit), "dependencies": [], "own_flags": ["part.c"]}
    report = build_variants(request(tmp_path, GCC_O2, GCC_O3, after, **build), unconfined)
    assert [each.facts.status for each in report.results] == ["built", "built", "same"]
    (said,) = unconfined.cache.replaced()
    assert "'tree' was changed while it was used" in said
    source = entry_of(unconfined.cache, "source")
    assert tree_sha256(source / "tree") == source.name.removeprefix("source-")


@pytest.mark.usefixtures("project")
def test_a_build_that_replaces_another_variants_program(
    tmp_path: Path, unconfined: BuildPorts
) -> None:
    replaces = 'for f in "$ENTRIES"/program-*/files/program; do [ -e "$f" ] || continue; chmod -R u+w "$ENTRIES"; cp /bin/true "$f"; done'  # noqa: E501
    asked = request(tmp_path, GCC_O2, GCC_O3, **harmful(tmp_path, replaces))
    report = prepare._built(asked, unconfined, lambda _: None)
    for result in report.results:
        assert result.artifact is not None
        out = subprocess.run([result.artifact], capture_output=True, check=True)
        assert out.stdout.startswith(b"sum 376")
    assert [each.code for each in report.findings].count("cache-replaced") == 1


@pytest.mark.usefixtures("project")
def test_what_is_changed_again_and_again_is_an_error_in_one_line(
    tmp_path: Path, unconfined: BuildPorts
) -> None:
    class Meddling(WithoutNamespaces):
        def run(self, request: ProcessRequest) -> Outcome:
            outcome = super().run(request)
            for path in (tmp_path / "cache/entries").glob("program-*/files/program"):
                overwrite(path, b"#!/bin/sh\n")
            return outcome

    ports = replace(unconfined, processes=Meddling())
    with pytest.raises(CommandFailed, match="changed by something else") as caught:
        prepare._built(request(tmp_path, GCC_O2, GCC_O3), ports, lambda _: None)
    assert "\n" not in str(caught.value)


def empty(folder: Path) -> dict[str, object]:
    (folder / "a").write_text("a")
    return {}


def test_what_is_put_aside_is_bounded_and_cleaned(tmp_path: Path) -> None:
    with Cache(tmp_path) as cache:
        for number in range(12):
            key = key_of(number)
            entry = cache.make("check", key, empty)
            cache.quarantine(entry.folder, "a test")
        assert len(list((tmp_path / "quarantine").iterdir())) == 8
        cache.clean()
        assert not (tmp_path / "quarantine").exists()


def test_entries_are_read_only_and_copies_of_them_are_not(tmp_path: Path, project: Path) -> None:
    (project / "main.c").chmod(0o444)
    study = tmp_path / "small.toml"
    with Cache(tmp_path / "cache") as cache:
        tree = obtain(SOURCE, study, source_ports(cache), update_lock=False).tree
        below = [tree, *tree.rglob("*")]
        assert not [each for each in below if stat.S_IMODE(each.lstat().st_mode) & 0o222]


def test_a_remembered_fact_is_a_hint(tmp_path: Path, project: Path, ports: BuildPorts) -> None:
    ports.cache.remember(key_of("x"), "\x00{[")
    for path in (ports.cache.folder / "memory").iterdir():
        path.write_bytes(b"\xff\xfe works")
    report = build_variants(request(tmp_path, GCC_O2), ports)
    assert report.results[0].facts.status == "built"
    for path in (ports.cache.folder / "memory").iterdir():
        path.write_bytes(b"\xff\xfe works")
    assert build_variants(request(tmp_path, GCC_O2), ports).results[0].facts.status == "cached"
    assert project.exists()
