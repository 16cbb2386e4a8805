"""Files that others made: programs, objects, archives, bundles, trials, sources."""

from __future__ import annotations

from pathlib import Path

from ensign.builders.rebuilt_programs import _fingerprint
from ensign.builders.record_file import read_record, still_true
from ensign.experiment.suites import _in_wheel
from ensign.host.processes import Outcome
from ensign.model.errors import CommandFailed, InputError
from ensign.proof.archives import contents, intermediate, read_archive, symbols_of
from ensign.proof.bounded_elf import DamagedFile
from ensign.proof.elf import exported, read_binary
from ensign.proof.evidence import BuildEvidence
from ensign.proof.facts import Proof
from ensign.proof.fast_math import links_fast_math
from ensign.proof.leftovers import _members, kind_of
from ensign.proof.link import defined_names, offered
from ensign.proof.loaded_bytes import content_sha256, read_artifact, read_built
from ensign.proof.loader import cache_of
from ensign.proof.objects import objects_below
from ensign.proof.origins import _read
from ensign.proof.read import unindexed_archive
from ensign.proof.unoptimized import read_unoptimized
from ensign.report import (
    as_artifact,
    as_csv,
    as_difference,
    as_fleet,
    as_json,
    as_markdown,
    as_terminal,
)
from ensign.sources.unpack import unpack as unpack_source
from ensign.store.bundle import BundleLimits, is_bundle, unpack
from ensign.store.trial_file import from_bytes
from ensign.tools.bundles import opened, unbundle
from ensign.tools.diff_studies import differences
from ensign.tools.doctor.advice import Offers, advice_for
from ensign.tools.doctor.artifact import examine_path
from ensign.tools.doctor.folder import FoundRecord
from ensign.tools.doctor.inspect_program import look_at
from ensign.tools.doctor.program_facts import facts_of
from ensign.tools.fleets import HostResults, fleet_of
from ensign_redis.plugin import RedisSpecification
from fakes import FakeProcesses
from fuzz.attempt import Target

_LIMITS = BundleLimits(members=2000, member_bytes=32 << 20, size_bytes=128 << 20)
_NOTHING_RUNS = FakeProcesses(lambda _: Outcome(127, None, "not-found"))


def _file(data: bytes, folder: Path, name: str) -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def _elf(data: bytes, folder: Path) -> None:
    path = _file(data, folder, "program")
    read_binary(path)
    read_artifact(path)
    read_built(path, "program")
    content_sha256(path)
    exported(path)
    defined_names(path)
    offered(path)
    _fingerprint(path)
    _read(path, "")
    binary = read_binary(path)
    read_unoptimized(path)
    links_fast_math(path)
    look = None if binary is None else look_at(path, BuildEvidence("x", Proof(binary)))
    if look is not None:
        facts_of(look)
        advice_for(look, Offers(levels=("x86-64-v3",)))


def _build_record(data: bytes, folder: Path) -> None:
    found = read_record(_file(data, folder, "record"))
    still_true(found, ())
    FoundRecord(folder / "record", found)


def _loader_cache(data: bytes, _folder: Path) -> None:
    cache_of(data)


def _object(data: bytes, folder: Path) -> None:
    path = _file(data, folder, "x.o")
    objects_below({"x.o": path})
    found = intermediate(data)
    read_binary(path)
    _read(path, "")
    symbols_of(data, found)


def _archive(data: bytes, folder: Path) -> None:
    path = _file(data, folder, "libx.a")
    kind_of(path)
    for name, _ in contents(path):
        _read(path, name)
        break
    read_archive(path)
    unindexed_archive(path, "libx.a")
    objects_below({"libx.a": path})
    list(_members(path))


def _doctor(data: bytes, folder: Path) -> None:
    name = "x.o" if data[16:18] == b"\1\0" else "program"
    found = examine_path(_file(data, folder, name), _NOTHING_RUNS)
    as_artifact.as_json(found)
    as_artifact.terminal(found)


def _doctor_folder(data: bytes, folder: Path) -> None:
    """The parts of a file, each a file of a folder: `NAME NUL CONTENT NUL NUL`."""
    below = folder / "built"
    below.mkdir()
    for part in data.split(b"\0\0\n")[:20]:
        name, _, content = part.partition(b"\0")
        plain = "".join(
            letter for letter in name.decode("latin-1") if letter.isalnum() or letter in "._-"
        )
        if plain.strip(".") and plain.lower() not in ("makefile", "gnumakefile"):
            (below / plain[:60]).write_bytes(content)
    found = examine_path(below, _NOTHING_RUNS)
    as_artifact.terminal(found)


def _unpacked(data: bytes, folder: Path) -> None:
    unpack_source(_file(data, folder, "a.tar"), folder / "tree", 0, "the archive")


def _unbundled(data: bytes, folder: Path) -> None:
    (folder / "out").mkdir()
    unpack(_file(data, folder, "b.zip"), folder / "out", _LIMITS)


def _reported(data: bytes, folder: Path) -> None:
    path = _file(data, folder, "b.zip")
    if not is_bundle(path):
        return
    with opened(path) as found:
        result = found.result()
    for render in (as_terminal.render, as_json.render, as_csv.render, as_markdown.render):
        render(result)
    as_terminal.render(result, details=True, every_workload=True)


def _taken_out(data: bytes, folder: Path) -> None:
    path = _file(data, folder, "b.zip")
    unbundle(path, folder / "again")


def _differing(data: bytes, folder: Path) -> None:
    good = Path(__file__).parent / "corpus" / "report" / "study.zip"
    found = differences(_file(data, folder, "b.zip"), good)
    as_difference.text(found)
    as_difference.markdown(found)
    as_difference.as_json(found)


def _merged(data: bytes, folder: Path) -> None:
    good = Path(__file__).parent / "corpus" / "report" / "study.zip"
    found = fleet_of([HostResults(_file(data, folder, "b.zip")), HostResults(good)], {})
    as_fleet.text(found)
    as_fleet.markdown(found)
    as_fleet.as_json(found)


def _trial(data: bytes, _folder: Path) -> None:
    from_bytes(data)


def _wheel(data: bytes, folder: Path) -> None:
    dict(_in_wheel(_file(data, folder, "x.whl"), RedisSpecification()))


_WRITES = (InputError, CommandFailed)
FILE_TARGETS = (
    Target("elf", _elf),
    Target("object", _object, refused=(InputError, DamagedFile)),
    Target("build-record", _build_record),
    Target("loader-cache", _loader_cache),
    Target("archive", _archive, refused=(InputError, DamagedFile)),
    Target("doctor", _doctor),
    Target("doctor-folder", _doctor_folder),
    Target("unpack", _unpacked, refused=_WRITES),
    Target("bundle", _unbundled, "zip", _WRITES, "report"),
    Target("report", _reported, "zip", _WRITES),
    Target("unbundle", _taken_out, "zip", _WRITES, "report"),
    Target("diff", _differing, "zip", _WRITES, "report"),
    Target("merge", _merged, "zip", _WRITES, "report"),
    Target("trial", _trial),
    Target("wheel", _wheel, "zip"),
)
