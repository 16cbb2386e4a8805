"""Texts that others wrote, or programs that others made: documents, logs, tables of the kernel."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from ensign.builders import inspection
from ensign.builders.build_depends import unmet_in
from ensign.builders.first_error import first_error
from ensign.builders.profiles import taken_branches, warnings_in
from ensign.builders.rebuilt_programs import TreeBefore, what_ran
from ensign.builders.recorder import compile_commands, read_calls
from ensign.builders.sandboxes import Sandbox
from ensign.builders.stage_facts import reader
from ensign.experiment.cluster.task_files import TaskFiles
from ensign.experiment.cluster.tasks import read_hosts
from ensign.experiment.compare.options import read_drive
from ensign.experiment.compare.result import read_bundled
from ensign.experiment.environments import system_of
from ensign.experiment.study.record import read_record
from ensign.experiment.study_file import find_positions, parse_study, read_cluster
from ensign.host.entry import read_meta
from ensign.host.machine import processor_of, read_activity, read_machine
from ensign.host.regular_file import read_json
from ensign.host.root_directory import RootDirectory
from ensign.meter.client import record_of_line
from ensign.meter.followed_files import read_followed
from ensign.meter.questions import parse_abilities, parse_registers
from ensign.meter.records import TrialPlace, ended_of, outcome_of, trials
from ensign.model.environment_sheet import (
    EnvironmentSheet,
    read_sheet,
    registers_of,
    sheet_differences,
)
from ensign.model.errors import CommandFailed, InputError, InternalError, Interrupted
from ensign.model.instructions import sets_of
from ensign.model.study_workload import Workload
from ensign.proof.archives import symbols_by_member
from ensign.proof.dry_run import asked_of_commands, asked_of_dry_run
from ensign.proof.elf import unit_of
from ensign.proof.leftovers import read_leftovers
from ensign.proof.link_line import files_in_map, used_by_map
from ensign.proof.rules.log import unknown_lto
from ensign.report.as_environment import differences_text, sheet_text
from ensign.ship.source_change import with_debian_variables
from ensign.sources.debian import (
    parse_deb822,
    parse_one_line,
    parse_revisions,
    source_list,
    upstream_version,
)
from ensign.sources.environments import drift, read_pin, read_pins
from ensign.sources.obtain import read_lock
from ensign.store.folder import StudyFolder
from ensign.toolchains.profiling import bolt_count, gcov_count, profdata_count, profdata_names
from ensign.tools.doctor.folder import _readable
from ensign.tools.init import build_options
from ensign.tools.init.documented_commands import choices_of, options_of, shown_commands
from ensign.workloads import google_benchmark, pyperf
from ensign.workloads.plugin import SourceFile
from ensign.workloads.project_tests import project_tests, with_placeholders, workload_tables
from ensign_redis.plugin import RedisSpecification
from fuzz.attempt import Target

_PLACE = TrialPlace("workload", first_round=0, seed=1, slice_ns=5_000_000)
_BEFORE = TreeBefore({}, frozenset())


def _introspected(data: bytes, _folder: Path) -> None:
    """What build systems tell of a tree; the others' replies are no mistake here."""
    for parse in (
        inspection.cmake_target,
        lambda said: inspection.ctest_tests(said, "/b"),
        lambda said: inspection.meson_targets(said, "/b"),
        lambda said: inspection.meson_tests(said, "/b"),
    ):
        with suppress(InputError):
            parse(data)


def _text(parse: Callable[[str], object]) -> Callable[[bytes, Path], None]:
    """Of texts that ensign decodes with replacements."""

    def run(data: bytes, _folder: Path) -> None:
        parse(data.decode(errors="replace"))

    return run


def _in_file(read: Callable[[Path], object], name: str = "file") -> Callable[[bytes, Path], None]:
    def run(data: bytes, folder: Path) -> None:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        read(path)

    return run


def _study(data: bytes, folder: Path) -> None:
    text = data.decode(errors="replace").replace("\r", "")
    parse_study(text, folder / "study.toml", machine_cpus=frozenset(range(4)))


def _cluster(path: Path) -> None:
    cluster = read_cluster(path)
    for group in cluster.hosts.values():
        cluster.placement(group)


def _task_files(data: bytes, folder: Path) -> None:
    """Words of a job, where another program wrote into the folder that all share."""
    (folder / "tasks").mkdir()
    for name in ("tasks/t.progress.json", "tasks/t.outcome.json", "tasks/t.jobs", "cluster.json"):
        (folder / name).write_bytes(data)
    files = TaskFiles(StudyFolder(folder))
    files.progress("t")
    files.outcome("t")
    list(files.lines("t"))
    read_hosts(files.folder)


def _positions(text: str) -> None:
    try:
        tomllib.loads(text)
    except (ValueError, RecursionError):
        return
    find_positions(text).line(("a", 0, "b"))


def _suite(data: bytes, _folder: Path) -> None:
    source = SourceFile("memtier_benchmark-a.yml", data.decode(errors="replace"))
    RedisSpecification().list_tests({"memtier_benchmark-a": source}, "7.2.0")


def _record(path: Path) -> None:
    folder = StudyFolder(path.parent)
    folder.read_json("study")
    read_record(folder)


def _comparison(path: Path) -> None:
    read_bundled(path.parent).result()


def _cached(path: Path) -> None:
    for kind in ("program", "bolt", "dependencies"):
        read_meta(path.parent, reader(kind))


def _apt(text: str) -> None:
    source_list(parse_deb822(text))
    source_list(parse_one_line(text))
    for revision in parse_revisions(text):
        upstream_version(revision.version)
        revision.orig("0")


def _debian_rules(text: str) -> None:
    more = {"DEB_CFLAGS_MAINT_APPEND": "-O3", "CC": "gcc-12"}
    changed = with_debian_variables(text, more)
    assert all(changed.count(f"export {name} ") for name in more)


def _shown(text: str) -> None:
    """What a tree says to its users of its programs, and of how it is configured."""
    shown_commands(text, "pack", ("in.txt", "data/x.emf"))
    options_of(text)
    choices_of(text)
    build_options.of_debian_rules(text, "cmake")
    build_options.of_cmake_cache(text)
    build_options.of_meson(text.encode(errors="replace"))
    build_options.of_cargo(text)


def _profile(path: Path) -> None:
    text = path.read_text(errors="replace")
    profdata_count(text)
    profdata_names(text)
    bolt_count(text)
    with path.open(errors="replace") as lines:
        gcov_count(lines)
    taken_branches(path)
    warnings_in(path)


def _said(text: str) -> None:
    """What compilers and linkers said."""
    unknown_lto(text)
    first_error(text)
    used_by_map(text)
    files_in_map(text)
    symbols_by_member(text, "libx.a")
    unit_of(text[:4000], "x.c", "/src")
    asked_of_dry_run(text, "/src")


def _commands(path: Path) -> None:
    with _readable(path):
        asked_of_commands(read_json(path.read_text()))


def _benchmarks(text: str) -> None:
    """Reports of benchmark frameworks, and lists of tests: each reader gets them all."""
    with suppress(ValueError):
        document = read_json(text)
        for read in (google_benchmark.scores, pyperf.scores):
            with suppress(CommandFailed):
                read(document)
        with suppress(InputError):
            tests = project_tests(document)
            tables = tomllib.loads(workload_tables(with_placeholders(tests, "/src", "build/a")))
            for each in tables.get("workloads", ()):
                Workload.model_validate(each)


def _kernel(data: bytes, folder: Path) -> None:
    """One text in the place of each that is read of the kernel."""
    for name in ("stat", "cpuinfo", "meminfo", "loadavg", "sys/kernel/osrelease"):
        path = folder / "proc" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    for name in ("online", "cpu0/topology/thread_siblings_list", "cpu0/cpu_capacity"):
        path = folder / "sys/devices/system/cpu" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    (folder / "etc").mkdir()
    (folder / "etc/os-release").write_bytes(data)
    read_machine(folder, libc="glibc 2.36")
    read_activity(folder)
    processor_of(data.decode(errors="replace"))


def _followed(data: bytes, folder: Path) -> None:
    path = folder / "log"
    path.write_bytes(data)
    (folder / "tree").mkdir()
    what_ran((path,), Sandbox(folder / "tree", folder, folder, recorder=folder), _BEFORE, {})
    read_followed(data)


def _records(data: bytes, _folder: Path) -> None:
    lines = tuple(map(record_of_line, data.splitlines()))
    for read in (lambda: list(trials(lines, _PLACE)), lambda: outcome_of(lines)):
        with suppress(InputError, CommandFailed, InternalError, Interrupted):
            read()
    ended_of(lines)


def _recorded(path: Path) -> None:
    calls = read_calls(path)
    compile_commands(calls)
    for call in calls:
        call.is_compiler, call.has_linked  # noqa: B018


_OURS = (InputError, CommandFailed, InternalError)


def _pins(path: Path) -> None:
    """What a lock file has of environments."""
    for name in read_pins(path):
        pin = read_pin(path, name)
        if pin is not None:
            drift(pin.packages, {})


def _registers(data: bytes, _folder: Path) -> None:
    """What the meter says of the processor, and what that has."""
    processor_of("", parse_registers(data.decode(errors="replace")))


def _sheet(data: bytes, _folder: Path) -> None:
    """A saved sheet, and its differences as they are shown."""
    with suppress(ValueError):
        sheet = read_sheet(read_json(data))
        found = sheet_differences(sheet, EnvironmentSheet("host", {"libc": "glibc 2.36"}))
        differences_text(found)
        sheet_text(sheet)
        sets_of(registers_of(sheet))


def _system(data: bytes, folder: Path) -> None:
    """A root directory whose release, packages and C library are all these bytes."""
    for name in ("etc/os-release", "var/lib/dpkg/status", "lib64/libc.so.6"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    system_of(RootDirectory("r", folder, ""))


TEXT_TARGETS = (
    Target("study", _study, "toml"),
    Target("cluster", _in_file(_cluster), "toml"),
    Target("task-files", _task_files, "json"),
    Target("toml-positions", _text(_positions), "toml", corpus="study"),
    Target("drive-file", _in_file(read_drive), "toml"),
    Target("suite", _suite, "yaml"),
    Target("lock", _in_file(read_lock), "json"),
    Target("record", _in_file(_record, "study.json"), "json"),
    Target("comparison", _in_file(_comparison, "comparison.json"), "json"),
    Target("cached", _in_file(_cached, "meta.json"), "json"),
    Target("leftovers", _in_file(read_leftovers), "json"),
    Target("pins", _in_file(_pins), "json", corpus="lock"),
    Target("sheet", _sheet, "json"),
    Target("system", _system, "text", corpus="apt"),
    Target("apt", _text(_apt), "text"),
    Target("build-depends", _text(unmet_in), "text"),
    Target("debian-rules", _text(_debian_rules), "text"),
    Target("shown-commands", _text(_shown), "text"),
    Target("profile", _in_file(_profile), "text"),
    Target("said", _text(_said), "text"),
    Target("introspected", _introspected, "json"),
    Target("compile-commands", _in_file(_commands), "json"),
    Target("benchmarks", _text(_benchmarks), "json"),
    Target("kernel", _kernel, "text"),
    Target("followed", _followed, "json", _OURS),
    Target("probed", _text(parse_abilities), "json", _OURS),
    Target("registers", _registers, "json", _OURS),
    Target("records", _records, "lines", _OURS),
    Target("recorded", _in_file(_recorded), "lines"),
)
