"""Evidence for the rules: the proof, the recorded calls, the log, and the request. Pure."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatch
from pathlib import PurePosixPath

from ensign.model.calls import Call
from ensign.model.findings import Finding, FindingKind
from ensign.model.unit_choices import UnitChoices
from ensign.model.variants import Variant
from ensign.proof.comparison import Choices
from ensign.proof.facts import Proof, Unit, UnitKind
from ensign.proof.flags import effects
from ensign.toolchains.table import Flags

_SHOWN, _NAMED = 3, 5


@dataclass(frozen=True, slots=True)
class Request:
    """The variant that was asked for, and the flags that it was to pass.

    `programs` are the paths of its compiler, `compiler` is how debug information names it (as
    `GCC 12.2.0`); `prebuilt` has the study's globs of objects that are linked as they are,
    `own_flags` those of sources that the project compiles with flags of its own. `staged` says that
    bundled dependencies have a stage of their own. `units` are sources that were to have other
    flags, `unit_flags`.
    """

    variant: Variant
    flags: Flags
    programs: frozenset[str] = frozenset()
    compiler: str = ""
    prebuilt: tuple[str, ...] = ()
    own_flags: tuple[str, ...] = ()
    staged: bool = False
    units: UnitChoices | None = None
    unit_flags: Flags | None = None


@dataclass(frozen=True, slots=True)
class BuildEvidence:
    """All evidence of one build. `request` is None for what was built without ensign.

    `calls` are of the program's own stage, `dependency_calls` of the stage before it. `subject`
    is what findings are about: a variant, or a path. `file` names a file that is kept beside the
    program, where this is not about the program itself. `took` has the hashes of what compile calls
    wrote and its links took; it is empty where that is not known. `prebuilt` are units of objects
    that the study declares as such. `elsewhere` has flags that other files of the variant have,
    with the names of these.
    """

    subject: str
    proof: Proof
    request: Request | None = None
    calls: tuple[Call, ...] = ()
    dependency_calls: tuple[Call, ...] = ()
    log: str = ""
    file: str = ""
    took: frozenset[str] = frozenset()
    prebuilt: frozenset[Unit] = frozenset()
    elsewhere: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The file that this is about, in a sentence."""
        return self.file or PurePosixPath(self.proof.binary.path).name

    def finding(self, kind: FindingKind, text: str) -> Finding:
        """A finding about this build."""
        about = f"{self.file}: {text}" if self.file else text
        return kind.found(about, self.subject)

    def relative(self, path: str) -> str:
        """A path of the build, from the folder that it was done in."""
        return path.removeprefix(f"{self.proof.build_path}/")

    def has_own_flags(self, source: str) -> bool:
        """True if the study declares in `build.own_flags` that a source is to have its own.

        Or if the variant has others for it.
        """
        if self.request is None:
            return False
        name, units = self.relative(source), self.request.units
        declared = any(fnmatch(name, glob) for glob in self.request.own_flags)
        return declared or (units is not None and units.has(name))

    def of_units(self) -> BuildEvidence | None:
        """The same, asked for what sources with other choices were to have; None without any."""
        request = self.request
        if request is None or request.units is None or request.unit_flags is None:
            return None
        others = replace(
            request, flags=request.unit_flags, units=request.units.others(), unit_flags=None
        )
        return replace(self, request=others)

    @property
    def link(self) -> Call | None:
        """The call that linked the artifact, or the last one that linked at all."""
        name = PurePosixPath(self.proof.binary.path).name
        calls = [call for call in self.calls if call.has_linked]
        named = [call for call in calls if PurePosixPath(call.line.output or "").name == name]
        calls = named if named or self.file else calls
        return calls[-1] if calls else None


@dataclass(frozen=True, slots=True)
class Compiled:
    """A source file of the program: its unit in the artifact, its recorded call, or both.

    `words` are the flags that its compiler had; None where neither says.
    """

    source: str
    unit: Unit | None
    call: Call | None

    @property
    def words(self) -> tuple[str, ...] | None:
        """Words of the artifact's unit, where it has some, else of the call."""
        if self.unit is not None and self.unit.flags is not None:
            return self.unit.flags
        return None if self.call is None else self.call.ran[1:]

    @property
    def asked(self) -> tuple[str, ...]:
        """The words of its call, all that there is to see of definitions."""
        return () if self.call is None else self.call.ran[1:]

    @property
    def choices(self) -> Choices:
        """Choices of its flags, with the definitions on its recorded command line."""
        asked = effects(self.asked)
        defined = {key: value for key, value in asked.items() if key.startswith("D:")}
        return effects(self.words or ()) | defined


def own_units(seen: BuildEvidence) -> tuple[Compiled, ...]:
    """Units that the artifact was compiled from, without dependencies that see no flags.

    Units of the artifact; where recorded calls show that more objects went into it, these too.
    """
    foreign = _foreign_sources(seen)
    taken = _by_source(_taken(seen), every=bool(seen.took))
    calls = _by_source(_known(seen), every=False) | taken
    compiled: dict[tuple[str, tuple[str, ...] | None], Compiled] = {}
    for unit in units_of_build(seen):
        if unit.kind in (UnitKind.LTRANS, UnitKind.ASSEMBLER, UnitKind.OTHER):
            continue
        source = source_of(seen, unit)
        if source not in foreign:
            of_it = calls.get(source, [])
            call = of_it[0] if len(of_it) == 1 else None
            compiled.setdefault((source, unit.flags), Compiled(source, unit, call))
    with_unit = {source for source, _ in compiled}
    for source, several in taken.items():
        if source in foreign or source.endswith((".s", ".S")):
            continue
        # One source compiled twice: which call made which unit is not known, so all are judged.
        for call in several if len(several) > 1 or source not in with_unit else ():
            compiled.setdefault((source, call.ran), Compiled(source, None, call))
    return tuple(compiled.values())


def _by_source(calls: Iterable[Call], *, every: bool) -> dict[str, list[Call]]:
    """The calls that compiled each source; the last one of each, unless `every` one counts."""
    by_output: dict[str, list[Call]] = {}
    for call in calls:
        for source in _sources(call):
            by_output[source] = [*by_output.get(source, []), call] if every else [call]
    return by_output


def _known(seen: BuildEvidence) -> Iterator[Call]:
    """Without a study: all calls that compile, since lists of commands say nothing of archives."""
    if seen.request is None:
        yield from (call for call in seen.calls if call.exit == 0 and _sources(call))


def _taken(seen: BuildEvidence) -> Iterator[Call]:
    """Calls whose files the artifact's link took; of a list that knows no links, all of them."""
    if seen.link is not None or seen.request is not None:
        yield from linked_calls(seen)
    elif not seen.proof.binary.units:
        yield from _known(seen)


def units_of_build(seen: BuildEvidence) -> tuple[Unit, ...]:
    """The artifact's units without those that came compiled, with the compiler or the system."""
    inside = seen.proof.build_path
    return tuple(
        unit
        for unit in seen.proof.binary.units
        if unit not in seen.prebuilt
        and "/libgcc" not in unit.folder
        and (source_of(seen, unit).startswith(inside) or unit.kind is UnitKind.LTRANS)
    )


def source_of(seen: BuildEvidence, unit: Unit) -> str:
    """Path of a unit that hides the place of its build (-ffile-prefix-map=PLACE=.), too."""
    return _path(_path(seen.proof.build_path, unit.folder), unit.name)


def _foreign_sources(seen: BuildEvidence) -> frozenset[str]:
    if seen.request is not None and seen.request.variant.dependencies != "plain":
        return frozenset()
    return frozenset(source for call in seen.dependency_calls for source in _sources(call))


def linked_calls(seen: BuildEvidence) -> Iterator[Call]:
    """Calls that compiled what the artifact's link took, directly or in an archive."""
    link = seen.link
    plain = seen.request is None or seen.request.variant.dependencies == "plain"
    calls = seen.calls if plain else (*seen.dependency_calls, *seen.calls)
    if seen.took:
        last = {output.sha256: call for call in calls for output in call.outputs}
        yield from (
            call
            for call in calls
            if _sources(call)
            and any(
                output.sha256 in seen.took and last[output.sha256] is call
                for output in call.outputs
            )
        )
        return
    if link is None:
        return
    wanted = {_path(link.cwd, word.text) for word in link.line.inputs}
    names = {f"lib{w.text[2:]}.a" for w in link.line.inputs if w.text.startswith("-l")}
    for call in calls:
        if call.tool == "ar" and any(_archive_of(call, wanted, names)):
            wanted |= {_path(call.cwd, word) for word in call.ran if word.endswith((".o", ".lo"))}
    for call in calls:
        if not call.is_compiler or call.exit != 0 or not _sources(call):
            continue
        if call is link or any(output.path in wanted for output in call.outputs):
            yield call


def _archive_of(call: Call, wanted: set[str], names: set[str]) -> Iterator[str]:
    for word in call.ran[1:]:
        path = _path(call.cwd, word)
        if word.endswith(".a") and (path in wanted or PurePosixPath(word).name in names):
            yield path


def _sources(call: Call) -> tuple[str, ...]:
    if not call.is_compiler:
        return ()
    return tuple(_path(call.cwd, word) for word in call.line.sources)


def _path(folder: str, name: str) -> str:
    return os.path.normpath(str(PurePosixPath(folder) / name))


def moved(seen: BuildEvidence, before: str, after: str) -> BuildEvidence:
    """The same build as if what is below the folder `before` had been below `after`."""

    def path(text: str) -> str:
        return text.replace(before, after)

    def call(each: Call) -> Call:
        return replace(
            each,
            argv=tuple(map(path, each.argv)),
            ran=tuple(map(path, each.ran)),
            cwd=path(each.cwd),
            line=each.line.with_paths(path),
            outputs=tuple(replace(output, path=path(output.path)) for output in each.outputs),
        )

    binary = seen.proof.binary
    units = tuple(
        replace(unit, name=path(unit.name), folder=path(unit.folder)) for unit in binary.units
    )
    return replace(
        seen,
        proof=replace(seen.proof, binary=replace(binary, units=units)),
        calls=tuple(map(call, seen.calls)),
        dependency_calls=tuple(map(call, seen.dependency_calls)),
    )


def shown(names: Sequence[str]) -> str:
    """A few file names and how many more."""
    short = [PurePosixPath(name).name for name in names[:_SHOWN]]
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(short) + more


def some(names: Sequence[str]) -> str:
    """A few names in full and how many more."""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
