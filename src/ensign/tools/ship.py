"""`ensign ship`: from a measured study to the change that gives the project its best build."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ensign.builders.build import build_variants
from ensign.builders.environments import environments_of
from ensign.builders.request import BuildPorts, BuildRequest
from ensign.builders.sandbox_mounts import confinement_of
from ensign.experiment.ports import Ports
from ensign.experiment.study.prepare import build_ports, compilers_by_line
from ensign.experiment.study_file import StudyFile
from ensign.host.cache import Cache
from ensign.host.files import remove_tree, storage_errors, write_atomically
from ensign.host.foreign_files import read_foreign
from ensign.host.machine import flags_of_all
from ensign.host.regular_file import read_json
from ensign.meter.questions import read_processor
from ensign.model.builds import BuildFacts, BuildStatus, OnEvent
from ensign.model.comparisons import Direction
from ensign.model.environment_sheet import PROCESSOR_FLAGS, read_sheet, registers_of
from ensign.model.errors import InputError
from ensign.model.finding_kinds.builds import CHECK_FAILED
from ensign.model.findings import Severity
from ensign.model.instructions import (
    FIRST_LEVEL,
    LEVELS,
    InstructionSets,
    ProcessorSets,
    is_named,
    sets_of,
)
from ensign.model.quoting import visible
from ensign.model.results import Result
from ensign.model.shipment import Shipment, ShippedFile, VerifiedWith
from ensign.model.study import Study
from ensign.model.study_environment import environment_of
from ensign.model.study_problems import suggestion
from ensign.model.variants import Variant, trained
from ensign.report.confirmation import findings_of
from ensign.report.verdict import shown_regressions, suite_sentence, verdict_of
from ensign.ship import script
from ensign.ship.rebuild import instructions_of_variant, ship_variant
from ensign.ship.source_change import PATCH, EditError
from ensign.stats.winner import winner
from ensign.toolchains.spelling import without_evidence
from ensign.toolchains.table import Flags

_LONGEST_BYTES = 64 << 20  # /proc/cpuinfo of a thousand processors has 2 MiB
_SHOWN = 6
_BY_LEVEL = f"ship a variant with a target by its level ({', '.join(LEVELS)})"
_OWN = Path("/proc/cpuinfo")


@dataclass(frozen=True, slots=True)
class Host:
    """A host by the file that tells of it, and the instructions that all of its processors have."""

    name: str
    sets: ProcessorSets

    def __str__(self) -> str:
        return self.name


def read_host(path: Path) -> Host:
    """Host by a copy of /proc/cpuinfo, or by `ensign env show --json` there. InputError."""
    name = visible(str(path))
    try:
        own = path.resolve() == _OWN  # the kernel's files are no regular ones
        data = path.read_bytes() if own else read_foreign(path, _LONGEST_BYTES)
    except OSError as error:
        raise InputError(f"--host {name}: {error.strerror}") from None
    text = data.decode(errors="replace")
    if text.lstrip().startswith("{"):
        sets = _of_sheet(text)
    else:
        sets = _with(flags_of_all(text), read_processor().registers if own else {})
    if not sets.names:
        raise InputError(
            f"--host {name}: it names no flags of an x86-64 processor; give a copy of the host's "
            "/proc/cpuinfo, or what 'ensign env show --json' prints there"
        )
    return Host(name, sets)


def require_hosts(
    variant: str, instructions: InstructionSets | None, hosts: Sequence[Host]
) -> dict[str, str]:
    """Doubts about hosts, by their names: whether they have all that the variant may use.

    InputError where one of them lacks something, or nothing is known of what it may use.
    """
    if not hosts:
        return {}
    if instructions is None:
        raise InputError(
            f"which instructions {variant} uses is not known, so it cannot be said whether "
            f"it runs on these hosts; leave --host out, or {_BY_LEVEL}"
        )
    lacking = [(each, each.sets.lacking(instructions.sets)) for each in hosts]
    lacking = [(host, sets) for host, sets in lacking if sets]
    if lacking:
        host, sets = lacking[0]
        more = f", and {len(lacking) - 1} more of these hosts" if len(lacking) > 1 else ""
        raise InputError(
            f"{variant} does not run on {host.name}{more}: it may use {_listed(sets)}, which that "
            f"processor lacks; ship a variant with target {_level_of(hosts)}, or leave the host out"
        )
    doubts = {each.name: _doubt(each, instructions) for each in hosts}
    return {name: doubt for name, doubt in doubts.items() if doubt}


def _doubt(host: Host, instructions: InstructionSets) -> str:
    not_known = host.sets.not_known(instructions)
    if not not_known:
        return ""
    named = all(map(is_named, not_known)) and not host.sets.whole
    way = "what 'ensign env show --json' prints there says it" if named else _BY_LEVEL
    return f"whether {host.name} has {_listed(not_known)} is not known; {way}"


def _listed(sets: Collection[str]) -> str:
    names = sorted(sets)
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{', '.join(names[:_SHOWN])}{more}"


def _level_of(hosts: Sequence[Host]) -> str:
    """The highest level that all of them have."""
    common = frozenset.intersection(*(host.sets.names for host in hosts))
    return next((name for name, sets in reversed(LEVELS.items()) if sets <= common), FIRST_LEVEL)


def _of_sheet(text: str) -> ProcessorSets:
    try:
        sheet = read_sheet(read_json(text))
    except ValueError:
        return ProcessorSets(frozenset())
    return _with(sheet.facts.get(PROCESSOR_FLAGS, "").split(), registers_of(sheet))


def _with(flags: Iterable[str], registers: Mapping[str, int]) -> ProcessorSets:
    return ProcessorSets(frozenset(flags) | sets_of(registers), whole=bool(registers))


# Whose own files say where the flags belong.
_BY_SYSTEM = ("cargo", "debian")
PAGE = "pull-request.md"
_NAMES = (PATCH, script.NAME, script.FILES, PAGE)
REGRESSIONS, CHECK = "regressions", "check"
DESPITE = (REGRESSIONS, CHECK)


def _require_way(file: StudyFile, variant: str) -> None:
    """InputError where the study says nothing about how that variant becomes the project's."""
    plain = not any(trained(one) for one in file.variants if one.name == variant)
    known = file.study.build.system in _BY_SYSTEM
    if plain and file.study.ship is None and not known:
        raise InputError(
            f"{file.path} has no [ship] table, which says where the project's own build gets its "
            "flags; docs/how-to/ship.md shows one"
        )


def _require_place_for_sources(file: StudyFile, variant: str) -> None:
    """InputError where nothing says how sources get flags of their own in the project."""
    ship = file.study.ship
    if any(trained(one) for one in file.variants if one.name == variant):
        raise InputError(
            f"{variant} has a profile, and sources with flags of their own ('units'), which its "
            "script cannot give them: do it in the project's build files, and race that"
        )
    if ship is None or not any(edit.each_source for edit in ship.edits):
        raise InputError(
            f"{variant} has sources with flags of their own ('units'), and no edit of [ship] has "
            "'each_source', which says where they go; docs/how-to/ship.md shows one"
        )


@dataclass(frozen=True, slots=True)
class Demands:
    """Further demands on the change: run on these hosts, and work with these other compilers.

    With `update_lock` their environments may be others than the lock file pins; it is renewed.
    """

    hosts: Sequence[Host] = ()
    compilers: Sequence[str] = ()
    update_lock: bool = False


def ship(
    file: StudyFile,
    measured: BuildFacts,
    demands: Demands,
    cache: Cache,
    ports: Ports,
    on_event: OnEvent,
) -> Shipment:
    """Make and verify the change for a variant, which must still be built as it was measured.

    StudyError with the line of an edit that does not apply; InputError where the variant would not
    be built as it was measured, does not run on one of the hosts, or is not known to another
    compiler; CommandFailed where the project does not build with the change.
    """
    variant = measured.variant
    _require_way(file, variant)
    if any(one.units for one in file.variants if one.name == variant):
        _require_place_for_sources(file, variant)
    baseline = file.variants[0]
    known = [known_variant for known_variant in file.variants if known_variant.name == variant]
    if not known:
        raise _stale(file, variant)
    request = BuildRequest(file.study, file.path, (baseline, *known), baseline.name)
    building = build_ports(file, cache, ports)
    with compilers_by_line(file):
        built = build_variants(request, building, on_event).result(variant)
    if built.facts.identity != measured.identity:
        raise _stale(file, variant)
    instructions = instructions_of_variant(request, built, building)
    doubts = require_hosts(variant, instructions, demands.hosts)
    try:
        shipment = ship_variant(request, built, building, on_event)
        assert built.seen is not None  # noqa: S101  # it was shipped
        assert built.seen.request is not None  # noqa: S101  # it was built as one asked for
        flags = without_evidence(built.seen.request.flags)
        change = _Change(request, flags, building, on_event)
        tried = [_with_compiler(file.study, known[0], name) for name in demands.compilers]
        if demands.update_lock:
            change.pin_environments(tried)
        others = tuple(map(change.with_compiler, tried))
    except EditError as error:
        raise file.error(str(error), "ship", "edits", error.index) from None
    hosts = tuple(host.name for host in demands.hosts if host.name not in doubts)
    return replace(
        shipment,
        instructions=instructions,
        hosts=hosts,
        doubts=tuple(doubts.values()),
        others=others,
    )


@dataclass(frozen=True, slots=True)
class _Change:
    """The change of a variant of the request, by the flags that it gives the project."""

    request: BuildRequest
    flags: Flags
    ports: BuildPorts
    on_event: OnEvent

    def pin_environments(self, variants: Sequence[Variant]) -> None:
        """Make those of these variants anew, once for all of them, and renew the lock file."""
        both = (self.request.variants[0], *variants)
        request = replace(self.request, variants=both, update_lock=True)
        confinement = confinement_of(request, self.ports)
        environments_of(request, self.ports, confinement, self.on_event)

    def with_compiler(self, variant: Variant) -> VerifiedWith:
        """The same change, built by another compiler: beside what the study builds with that.

        InputError where it cannot build that variant, or is not there.
        """
        request = replace(self.request, variants=(self.request.variants[0], variant))
        built = build_variants(request, self.ports, self.on_event).result(variant.name)
        if built.seen is None:
            raise InputError(
                f"--with {variant.compiler}: {variant.name} is not built: {built.facts.why_and_log}"
            )
        shipped = ship_variant(request, built, self.ports, self.on_event, self.flags)
        return VerifiedWith(variant.compiler, shipped.compiler, shipped.verified)


def _with_compiler(study: Study, variant: Variant, compiler: str) -> Variant:
    """The same variant of another compiler. InputError where it names no environment there is."""
    environment = environment_of(compiler, study.build.environment or "")
    if environment and environment not in study.environments:
        near = suggestion(environment, [*study.environments])
        raise InputError(f"--with {compiler}: the study has no environment '{environment}'{near}")
    return replace(variant, name=f"{variant.name}-with-{compiler}", compiler=compiler)


def _stale(file: StudyFile, variant: str) -> InputError:
    return InputError(
        f"{variant} would not be built as it was measured: the study, its source, a compiler or a "
        f"profile is another one now; 'ensign run {file.path}' measures it again"
    )


def check_folder(folder: Path, *, force: bool) -> None:
    """InputError where a shipment would overwrite something, or cannot be written there."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"'{folder}' is a file; name a folder")
    if not folder.absolute().parent.is_dir():
        raise InputError(f"'{folder}' cannot be made: there is no '{folder.absolute().parent}'")
    there = [name for name in _NAMES if (folder / name).exists()]
    if there and not force:
        raise InputError(
            f"'{folder}' has {', '.join(there)} already; --force overwrites, "
            "-o names another folder"
        )


def write_folder(folder: Path, files: Sequence[ShippedFile]) -> None:
    """Write all files: a new folder in one step, in one that is there file by file.

    What an earlier shipment left there is removed first. StorageFailed where it cannot be written.
    """
    with storage_errors(folder):
        if folder.exists():
            for name in _NAMES:
                _remove(folder / name)
            _write(folder, files)
            return
        folder.parent.mkdir(parents=True, exist_ok=True)
        part = folder.with_name(f".{folder.name}.{secrets.token_hex(6)}.part")
        part.mkdir()
        try:
            _write(part, files)
            part.rename(folder)
        except BaseException:
            remove_tree(part)
            raise


def _write(folder: Path, files: Sequence[ShippedFile]) -> None:
    for file in files:
        path = folder / file.name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, file.content, mode=0o755 if file.executable else 0o644)


def _remove(path: Path) -> None:
    if path.is_dir():
        remove_tree(path)
    else:
        path.unlink(missing_ok=True)


def chosen(result: Result, wanted: str | None, despite: Collection[str] = ()) -> BuildFacts:
    """The build of the variant asked for, or of the winner. InputError where there is none.

    One that is named needs not be shown to be faster, but it must be one that could be shipped:
    one that fails its check, or is shown to be slower somewhere, only `despite` that.
    """
    unknown = sorted(set(despite).difference(DESPITE))
    if unknown:
        raise InputError(f"--despite knows {' and '.join(DESPITE)}, not '{unknown[0]}'")
    build = _chosen(result, wanted, despite)
    slower = "" if REGRESSIONS in despite else _regressions(result, build.raced_as)
    if slower:
        raise InputError(
            f"{build.variant} has a regression that is shown: {slower}; "
            f"to ship it all the same: --despite {REGRESSIONS}"
        )
    return build


def _regressions(result: Result, variant: str) -> str:
    """Regressions in the phase that decides about the variant, where it took part in it."""
    second = None if result.confirmation is None else result.confirmation.result
    for judged in filter(None, (second, result)):
        compared = next((row for row in judged.suite if row.comparison.variant == variant), None)
        if compared is None:
            continue
        text = shown_regressions(variant, judged)
        if not text and compared.comparison.direction is Direction.SLOWER:
            text = suite_sentence(compared, judged)
        return text
    return ""


def _chosen(result: Result, wanted: str | None, despite: Collection[str]) -> BuildFacts:
    if wanted is None:
        # Of an exploration nothing is claimed: not even that it has a winner.
        judged = result if result.confirmation is None else result.confirmation.result
        best = None if judged is None else winner(judged)
        if best is None:
            raise InputError(
                f"nothing to ship: {verdict_of(result).headline} Name a variant to ship it "
                "all the same"
            )
        return next(facts for facts in result.builds if facts.variant == best.comparison.variant)
    build = next((facts for facts in result.builds if facts.variant == wanted), None)
    if build is None:
        near = suggestion(wanted, [facts.variant for facts in result.builds])
        raise InputError(f"the study has measured no variant called '{wanted}'{near}")
    if result.baseline in (wanted, build.raced_as):
        raise InputError(f"{wanted} is what the baseline {result.baseline} is: nothing to ship")
    if build.status in (BuildStatus.FAILED, BuildStatus.LEFT_OUT):
        raise InputError(f"{wanted} cannot be shipped: it was not built ({build.said})")
    for finding in findings_of(result):
        if finding.subject != wanted or finding.severity is not Severity.ERROR:
            continue
        if not finding.is_a(CHECK_FAILED):
            raise InputError(f"{wanted} cannot be shipped: {finding.text} ({finding.code})")
        if CHECK not in despite:
            raise InputError(
                f"{wanted} cannot be shipped: {finding.text} ({finding.code}); "
                f"to ship it all the same: --despite {CHECK}"
            )
    return build
