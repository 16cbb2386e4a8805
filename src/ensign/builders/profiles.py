"""Commands that collect a profile, and readers of it. Pure.

A profile is collected in a copy of the instrumented program's files: commands that make it count
(BOLT alone), the training, commands that merge. `{counts}` is the folder where counts go,
`{profile}` the one whose files are laid into the trees that use the profile.
"""

from __future__ import annotations

import shutil
import stat
from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from ensign.builders.commands import Commands, with_folders
from ensign.host.cache import key_of
from ensign.host.files import tree_entries
from ensign.host.foreign_files import open_foreign_text, visit
from ensign.model import placeholders
from ensign.model.builds import ProfileCoverage
from ensign.model.study import Study
from ensign.model.study_workload import Workload
from ensign.model.units import parse_duration_ns
from ensign.model.variants import Variant
from ensign.proof.bounded_elf import DamagedFile, elf_of
from ensign.proof.symbol_tables import counter_idents
from ensign.toolchains import profiling
from ensign.toolchains.alignment import bolt_alignment
from ensign.toolchains.find import Toolchain
from ensign.toolchains.profiling import (
    FDATA,
    PROFDATA,
    ProfileCount,
    Profilers,
    bolt_count,
    gcov_count,
    gcov_functions,
    profdata_count,
    profdata_names,
    profile_warnings,
)

COUNTS, PROFILE, WORKLOAD = "{counts}", "{profile}", "{workload}"
FILE, NUMBER = "{file}", "{number}"
FUNCTIONS, RAN = "functions.txt", "ran.txt"
_NAMES = '"$0" show --all-functions "$1" > "$2"; "$0" show --covered "$1" > "$3"'


@dataclass(frozen=True, slots=True)
class TrainingSteps:
    """Collection of one profile.

    `env` is what the trained program alone gets, `wrapper` what goes in front of its command;
    `{workload}` in it is the name of the run. `tools_from` is the key of the stage whose tools
    the training needs, `index` counts profiles that are collected independently from 1, `server`
    and `files_sha256` are for the key. `instrument_file` and `merge_file` are for each further file
    of the program, `{file}`, counted by `{number}`.
    """

    workloads: tuple[Workload, ...]
    deadline_ns: int
    server: str
    files_sha256: str
    index: int
    tools_from: str = ""
    env: tuple[tuple[str, str], ...] = ()
    instrument: Commands = ()
    merge: Commands = ()
    wrapper: tuple[str, ...] = ()
    tools_sha256: str = ""
    instrument_file: Commands = ()
    merge_file: Commands = ()

    @property
    def key(self) -> str:
        """Hash of all that decides which profile comes out, but for the program."""
        return key_of(
            {
                "workloads": [workload.identity for workload in self.workloads],
                "server": self.server,
                "files": self.files_sha256,
                "index": self.index,
                "tools": [self.tools_from, self.tools_sha256],
                "commands": [self.env, self.instrument, self.merge, self.wrapper],
                "of_files": [self.instrument_file, self.merge_file],
            }
        )


def training_steps_of(
    study: Study, variant: Variant, tools_from: str, files_sha256: str
) -> TrainingSteps | None:
    """Values that all profiles of a variant share; None where there is no training."""
    training = study.training
    if training is None:
        return None
    return TrainingSteps(
        workloads=study.trained_on(variant.training),
        deadline_ns=parse_duration_ns(training.deadline),
        server="" if study.server is None else study.server.model_dump_json(),
        files_sha256=files_sha256,
        index=variant.profile,
        tools_from=tools_from,
    )


def uses_tools(study: Study) -> bool:
    """True if the training runs programs of the baseline's build."""
    return any(
        name in study.build.tools for text in _texts(study) for name in placeholders.names_in(text)
    )


def files_named(study: Study) -> tuple[str, ...]:
    """Words of the training that may name files: their content belongs to the profile's key."""
    return tuple(sorted(set(_texts(study))))


def _texts(study: Study) -> Iterable[str]:
    if study.training is None:
        return
    if study.server is not None:
        yield from study.server.command
        yield from study.server.env.values()
    for workload in study.training_workloads:
        yield from workload.load or ()
        yield from workload.command or ()
        yield from workload.server_args
        for argv in (*workload.preload_commands, workload.prepare or ()):
            yield from argv
        yield from workload.env.values()
        if workload.stdin:
            yield workload.stdin


def compiler_training_steps(
    training_steps: TrainingSteps, toolchain: Toolchain, build_path: str
) -> TrainingSteps:
    """For a program that the compiler made count."""
    kind, profilers = toolchain.kind, toolchain.profilers
    merge: Commands
    if kind.llvm_major:
        made = f"{PROFILE}/{profiling.PROFDATA}"
        merge = (
            (profilers.profdata, "merge", "-o", made, COUNTS),
            (profilers.profdata, "show", "--value-cutoff=1", made),
            (
                "sh",
                "-c",
                _NAMES,
                profilers.profdata,
                made,
                f"{COUNTS}/{FUNCTIONS}",
                f"{COUNTS}/{RAN}",
            ),
        )
    else:
        # libgcov has merged what several processes counted; `cp` gives it the build's own paths.
        merge = (("cp", "-R", f"{COUNTS}{build_path}/.", PROFILE),)
        if profilers.gcov_dump:
            script = 'find "$1" -name "*.gcda" -exec "$0" -l {} + > "$2"'
            dumped = f"{COUNTS}/{FUNCTIONS}"
            merge = (*merge, ("sh", "-c", script, profilers.gcov_dump, PROFILE, dumped))
    return replace(
        training_steps,
        env=profiling.instrumented_environment(kind, COUNTS),
        merge=merge,
        tools_sha256=profilers.identity,
    )


def bolt_training_steps(
    training_steps: TrainingSteps, toolchain: Toolchain, artifact: str
) -> TrainingSteps:
    """For a linked program that BOLT makes count, or whose branches this processor records."""
    profilers = toolchain.profilers
    if profilers.perf:
        return _recorded_branches(training_steps, profilers, artifact)
    made = f"{PROFILE}/{profiling.FDATA}"
    script = 'exec "$0" -o "$1" "$2"/*'
    own = f"{COUNTS}.files/{NUMBER}"
    return replace(
        training_steps,
        instrument=_instrumented(profilers.bolt, artifact, COUNTS),
        merge=(("sh", "-c", script, profilers.merge_fdata, made, COUNTS),),
        tools_sha256=profilers.identity,
        instrument_file=(("mkdir", "-p", own), *_instrumented(profilers.bolt, FILE, own)),
        merge_file=(("sh", "-c", script, profilers.merge_fdata, f"{made}.{NUMBER}", own),),
    )


def _instrumented(bolt: str, file: str, counts: str) -> Commands:
    made = profiling.bolt_instrument(bolt, file, f"{counts}/counts")
    return (made, ("mv", f"{file}.bolt", file))


def _recorded_branches(
    training_steps: TrainingSteps, profilers: Profilers, artifact: str
) -> TrainingSteps:
    script = (
        'for data in "$2"/*.data; do "$0" "$3" -p "$data" -o "${data%.data}.$5" || exit; done; '
        'exec "$4" -o "$1" "$2"/*."$5"'
    )
    perf2bolt = str(PurePosixPath(profilers.bolt).parent / "perf2bolt")
    made = f"{PROFILE}/{profiling.FDATA}"

    def merging(made: str, file: str, ending: str) -> Commands:
        return (("sh", "-c", script, perf2bolt, made, COUNTS, file, profilers.merge_fdata, ending),)

    return replace(
        training_steps,
        wrapper=profiling.branch_recording(profilers.perf, f"{COUNTS}/{WORKLOAD}.data"),
        merge=merging(made, artifact, "fdata"),
        tools_sha256=profilers.identity,
        merge_file=merging(f"{made}.{NUMBER}", FILE, f"fdata-{NUMBER}"),
    )


def bolt_commands(toolchain: Toolchain, artifact: str, alignment: str) -> Commands:
    """From a linked program and its profile to the program as BOLT lays it out."""
    return _laying_out(toolchain, artifact, profiling.FDATA, alignment)


def bolt_commands_of_file(toolchain: Toolchain, alignment: str) -> Commands:
    """The same for each further file that the program runs with."""
    return _laying_out(toolchain, FILE, f"{profiling.FDATA}.{NUMBER}", alignment)


def _laying_out(toolchain: Toolchain, file: str, data: str, alignment: str) -> Commands:
    words = bolt_alignment(toolchain.kind, alignment)
    optimize = profiling.bolt_optimize(toolchain.profilers.bolt, file, data, words)
    return (optimize, ("mv", f"{file}.bolt", file))


def of_file(commands: Commands, file: str, number: int) -> Commands:
    """Commands for the further file of that number."""
    return with_folders(commands, {FILE: file, NUMBER: str(number)})


def lay(profile: Path, tree: Path) -> None:
    """Copy the files of a profile to their places in a tree."""
    for name, path in tree_entries(profile):
        if path.is_file() and not path.is_symlink():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, tree / name)


def left_something(counts: Path) -> bool:
    """True if a trained program wrote any count."""
    return any(
        stat.S_ISREG(entry.status.st_mode) and entry.status.st_size for entry in visit([counts])
    )


def merged_coverage(profile: Path, counts: Path, log: Path) -> tuple[ProfileCoverage, ...] | None:
    """Coverage of a merged profile (BOLT's own is said by BOLT); None if nothing ran."""
    if (profile / FDATA).exists():
        return () if taken_branches(profile / FDATA) else None
    count: ProfileCount | None = None
    if (profile / PROFDATA).exists():
        count = profdata_count(log.read_text(errors="replace"))
    elif (counts / FUNCTIONS).exists():
        with open_foreign_text(counts / FUNCTIONS) as lines:
            count = gcov_count(lines)
    if count is None:
        return (ProfileCoverage("PGO"),)
    return (ProfileCoverage("PGO", count.functions, count.profiled),) if count.profiled else None


def idle_functions(counts: Path, programs: Iterable[Path]) -> tuple[str, ...]:
    """Symbols of functions that counted themselves in the training, and of which none ran.

    None where the compiler tells no names. `programs` are the instrumented ones.
    """
    if (counts / RAN).exists():
        every, ran = (_profdata_names(counts / name) for name in (FUNCTIONS, RAN))
        return tuple(sorted(every - ran))
    if not (counts / FUNCTIONS).exists():
        return ()
    with open_foreign_text(counts / FUNCTIONS) as lines:
        taken: defaultdict[int, bool] = defaultdict(bool)
        for ident, ran_here in gcov_functions(lines):
            taken[ident] |= ran_here
    # A name that several units have is idle where none of these functions ran.
    ran_by_name: defaultdict[str, bool] = defaultdict(bool)
    for program in programs:
        with suppress(DamagedFile, OSError), elf_of(program) as elf:
            for name, ident in counter_idents(elf):
                if ident in taken:
                    ran_by_name[name] |= taken[ident]
    return tuple(sorted(name for name, has_run in ran_by_name.items() if not has_run))


def _profdata_names(path: Path) -> frozenset[str]:
    with open_foreign_text(path) as lines:
        return profdata_names("".join(lines))


def taken_branches(fdata: Path) -> bool:
    """True if any branch or call in a profile of BOLT's was taken; its lines end in the count."""
    with open_foreign_text(fdata) as lines:
        return any(line.rsplit(" ", 1)[-1].strip() not in ("", "0") for line in lines)


def bolt_coverage(log: Path) -> ProfileCoverage:
    """BOLT's own words on its profile, from the log of its stage."""
    count = bolt_count(log.read_text(errors="replace"))
    if count is None:
        return ProfileCoverage("BOLT")
    return ProfileCoverage("BOLT", count.functions, count.profiled)


def warnings_in(log: Path) -> dict[str, int]:
    """The compiler's complaints about the profile, counted by flag."""
    with log.open(errors="replace") as lines:
        return profile_warnings(lines)
