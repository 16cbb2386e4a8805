"""Carrying out relinks in the room in which the program was built, right after its build."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ensign.builders import relink
from ensign.builders.proof.archives import intermediate
from ensign.builders.proof.link import Place
from ensign.builders.relink import Link, Relinks
from ensign.builders.verify import read_artefact
from ensign.host.files import file_sha256
from ensign.host.processes import Outcome
from ensign.model.calls import Call

FOLDER = "layouts"
# mold 1.10 goes round for ever on some orders; a link that ends takes about as long as the first.
_TIMES_ITS_LINK, _LEAST_NS = 10, 10_000_000_000


@dataclass(frozen=True, slots=True)
class Bench:
    """Where relinks are made, of the artefact at that path in the tree of `place`.

    `run` runs one command in the room, for so many nanoseconds at most where it is told a number;
    `scratch` is a folder of the room's own, as a pair: its path here, and as commands in the room
    see it.
    """

    run: Callable[[tuple[str, ...], int | None], Outcome]
    calls: Sequence[Call]
    place: Place
    scratch: tuple[Path, str]
    artefact: str


@dataclass(frozen=True, slots=True)
class Relinked:
    """What came of it: hashes of the loadable bytes of each distinct relink, in order.

    `obstacle` says why there is none; `notes` what is less than was asked for.
    """

    hashes: tuple[str, ...] = ()
    kind: str = ""
    obstacle: str = ""
    notes: tuple[str, ...] = ()


class _CannotError(Exception):
    pass


class _EndlessError(Exception):
    pass


@dataclass(frozen=True, slots=True)
class _Found:
    """Hashes of what differs, in order, and how many links did not end."""

    hashes: tuple[str, ...]
    endless: int

    def notes(self, asked: Relinks) -> tuple[str, ...]:
        many, few = len(asked.seeds), len(self.hashes)
        said = () if few == many else (f"{many} relinks gave only {few} different programs",)
        if self.endless:
            said = (*said, f"the linker did not end in {self.endless} of {many} orders")
        return said


def make_relinks(asked: Relinks, bench: Bench, folder: Path) -> Relinked:
    """Make the relinks, as `folder/NUMBER/ARTEFACT`. What cannot be relinked is no failure."""
    try:
        return _make(asked, bench, folder)
    except _CannotError as error:
        return Relinked(obstacle=str(error))


def _make(asked: Relinks, bench: Bench, folder: Path) -> Relinked:
    built = bench.place.tree / bench.artefact
    if not bench.calls:
        raise _CannotError("the calls of its build were not recorded")
    digest = file_sha256(built) if built.is_file() else ""
    call = relink.link_call(bench.calls, f"{bench.place.seen_as}/{bench.artefact}", digest)
    if call is None:
        raise _CannotError("no recorded call of a compiler linked it")
    link = relink.link_of(call)
    obstacle = relink.obstacle(link, asked)
    if obstacle:
        raise _CannotError(obstacle)
    bench.scratch[0].mkdir(parents=True, exist_ok=True)
    if link.lto:
        link = _generated(link, asked, bench, built)
    else:
        _run(bench, link, relink.again(link, f"{bench.scratch[1]}/again"))
        _check_same(bench.scratch[0] / "again", built)
    limit_ns = max(_LEAST_NS, _TIMES_ITS_LINK * call.wall_ns)
    found = _distinct(
        asked, bench, folder, lambda seed: _relink(link, asked, seed, bench, limit_ns)
    )
    notes = (*relink.notes_on(link, asked), *found.notes(asked))
    if not found.hashes:
        raise _CannotError(notes[-1])
    return Relinked(found.hashes, relink.kind_of_relink(link, asked), "", notes)


def make_bolted(asked: Relinks, argv: tuple[str, ...], bench: Bench, folder: Path) -> Relinked:
    """As `make_relinks`, by BOLT's `argv`, while the program that it reads is in the tree."""
    bench.scratch[0].mkdir(parents=True, exist_ok=True)

    def make(seed: int) -> Path:
        outcome = bench.run(relink.bolt_again(argv, seed, f"{bench.scratch[1]}/relinked"), None)
        if not outcome.ok:
            raise _CannotError(f"BOLT, run again, {outcome.describe()}")
        return bench.scratch[0] / "relinked"

    try:
        found = _distinct(asked, bench, folder, make)
    except _CannotError as error:
        return Relinked(obstacle=str(error))
    notes = found.notes(asked)
    if asked.how == "order":
        notes = ("BOLT can only order hot functions at random, not mildly", *notes)
    return Relinked(found.hashes, "hot functions in random order by BOLT", "", notes)


def _distinct(asked: Relinks, bench: Bench, folder: Path, make: Callable[[int], Path]) -> _Found:
    """Keep what differs."""
    found: dict[str, None] = {}
    endless = 0
    for seed in asked.seeds:
        try:
            made = make(seed)
        except _EndlessError:
            endless += 1
            continue
        facts = read_artefact(made)
        if facts is not None and facts.loadable_sha256 not in found:
            target = folder / str(len(found)) / bench.artefact
            target.parent.mkdir(parents=True)
            shutil.copy2(made, target)
            found[facts.loadable_sha256] = None
        made.unlink()
    return _Found(tuple(found), endless)


def _check_same(again: Path, built: Path) -> None:
    """What was changed after its link is not what a relink gives."""
    here, there = read_artefact(built), read_artefact(again)
    again.unlink()
    if here is None or there is None or here.loadable_sha256 != there.loadable_sha256:
        raise _CannotError(
            "its recorded link, done again, gives another program: it was changed after the link"
        )


def _generated(link: Link, asked: Relinks, bench: Bench, built: Path) -> Link:
    """The link after code generation, which is done once for all relinks."""
    here, seen = bench.scratch[0] / "lto", f"{bench.scratch[1]}/lto"
    here.mkdir()
    _run(bench, link, relink.code_generation(link, seen, gcc=asked.gcc))
    _check_same(here / "program", built)
    pattern = relink.generated_pattern(gcc=asked.gcc)
    objects = []
    for name in relink.in_number_order([path.name for path in here.glob(pattern)]):
        made = f"{seen}/{name}"
        if asked.gcc:
            made = f"{seen}/{name.removesuffix('.s')}.o"
            _run(bench, link, relink.assembling(link, f"{seen}/{name}", made))
        objects.append(made)
    intermediate = frozenset(word for word in link.units if _is_intermediate(word, link, bench))
    if not objects or not intermediate:
        raise _CannotError("its LTO link left no generated code to link again")
    return relink.with_generated(link, intermediate, objects)


def _is_intermediate(word: str, link: Link, bench: Bench) -> bool:
    path = bench.place.find(word, link.cwd)
    return path.is_file() and bool(intermediate(path.read_bytes()).language)


def _relink(link: Link, asked: Relinks, seed: int, bench: Bench, limit_ns: int) -> Path:
    here, seen = bench.scratch
    padding = f"{seen}/padding.o"
    if not relink.shuffles(link, asked):
        (here / "padding.c").write_text(relink.padding_source(seed))
        _run(bench, link, relink.assembling(link, f"{seen}/padding.c", padding))
    _run(bench, link, relink.relink(link, asked, seed, f"{seen}/relinked", padding), limit_ns)
    return here / "relinked"


def _run(bench: Bench, link: Link, argv: tuple[str, ...], limit_ns: int | None = None) -> None:
    outcome = bench.run(("env", "-C", link.cwd, *argv), limit_ns)
    if limit_ns is not None and outcome.reason == "deadline":
        raise _EndlessError
    if not outcome.ok:
        raise _CannotError(f"its link, done again, {outcome.describe()}")
