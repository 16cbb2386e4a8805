"""The options of `ensign compare`: each is declared here, and nowhere else. Pure.

The command line has a parameter for each field that is an option, and `--help` and the reference
page follow from that. Little is imported: all commands are declared when ensign starts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints

from ensign.model.trials import Better, Metric, Mode, Score
from ensign.model.units import parse_duration_ns, parse_share

if TYPE_CHECKING:
    from ensign.model.drive import Drive

import re
import shlex
import tomllib

from pydantic import ValidationError

from ensign.host.regular_file import read_text
from ensign.model.drive import Drive
from ensign.model.errors import InputError
from ensign.model.validation import first_error

_BARE = frozenset("|&;<>()*?~`$\n")
_IN_DOUBLE_QUOTES = frozenset("`$")
_LAST_CPU = 65_535
_LAST_PORT = 65_535


def split_command(text: str, *, shell: str) -> tuple[str, ...]:
    """The argument list of a command; with a `shell` it is handed to `SHELL -c` as it is.

    InputError if it is empty or no text, its quotes are open, or it needs a shell that was not
    asked for.
    """
    if not text.strip():
        raise InputError("a command is empty")
    if any("\udc80" <= character <= "\udcff" for character in text):
        # So Python stands for bytes of the command line that are not UTF-8.
        shown = text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
        raise InputError(
            f"the command '{shown}' is not UTF-8 text; give the file another name, or a link to it"
        )
    if shell:
        return (shell, "-c", text)
    found = _shell_character(text)
    if found is not None:
        raise InputError(
            f"the command '{text}' contains the shell character '{found}'; "
            "quote it, or pass --shell (or --shell=bash) to run commands by a shell"
        )
    try:
        return tuple(shlex.split(text))
    except ValueError as error:
        raise InputError(f"the command '{text}' cannot be split: {error}") from None


def _shell_character(text: str) -> str | None:
    quote = ""
    escaped = False
    for character in text:
        if escaped:
            escaped = False
        elif character == "\\" and quote != "'":
            escaped = True
        elif quote:
            if character == quote:
                quote = ""
            elif quote == '"' and character in _IN_DOUBLE_QUOTES:
                return character
        elif character in "'\"":
            quote = character
        elif character in _BARE:
            return character
    return None


def require_group(option: str, pattern: str, number: str) -> None:
    """InputError where a pattern of that option has no group for the number, which looks so."""
    try:
        groups = re.compile(pattern).groups
    except re.error as error:
        raise InputError(
            f"{option} '{pattern}' is not a valid regular expression: {error}"
        ) from None
    if groups < 1:
        raise InputError(f"{option} '{pattern}' needs a group around the number: ({number})")


def parse_cpus(text: str) -> tuple[int, ...]:
    """`1`, `0,2` or `0-3` as CPU numbers. InputError otherwise."""
    cpus: list[int] = []
    try:
        for part in text.split(","):
            first, dash, last = part.partition("-")
            cpus += _span(int(first), int(last)) if dash else [int(first)]
    except ValueError:
        cpus = []
    if not cpus or min(cpus) < 0:
        raise InputError(f"'{text}' is not a list of CPUs; write it as 1, 0,2 or 0-3")
    return tuple(dict.fromkeys(cpus))


def parse_ports(text: str) -> tuple[int, int]:
    """`20000-29999` as the first and the last port. InputError otherwise."""
    first, dash, last = text.partition("-")
    if dash and first.isdecimal() and last.isdecimal():
        ports = int(first), int(last)
        if 0 < ports[0] <= ports[1] <= _LAST_PORT:
            return ports
    raise InputError(f"'{text}' is not a range of ports; write it as 20000-29999")


def _span(first: int, last: int) -> range:
    if last > _LAST_CPU:
        raise ValueError
    return range(first, last + 1)


def read_drive(path: Path) -> Drive:
    """Requests of the drive. InputError with the key that is wrong."""
    try:
        return Drive.model_validate(tomllib.loads(read_text(path)))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path} is no TOML: {error}") from None
    except RecursionError:
        raise InputError(f"{path} is no TOML that could be read: it nests too deeply") from None
    except ValidationError as error:
        raise InputError(f"{path}: {first_error(error)}") from None


DEFAULT_PRECISION = 0.005
DEFAULT_BUDGET_NS = 30 * 10**9
DEFAULT_SLICE_NS = 5_000_000
DEFAULT_READY_NS = 20 * 10**9
DEFAULT_PORTS = (20_000, 29_999)
# Given once they stand for every command.
PER_COMMAND = ("setup", "prepare", "cleanup", "load", "preload")
# Between the words of one value, where an option has several.
WORDS = "\x1f"
# A command without a budget to bound it may be long, but not endless.
_LONGEST_RUN_NS = 600 * 10**9
_SHOWN = "inherit"


@dataclass(frozen=True, slots=True)
class Option:
    """Spelling of a field on the command line.

    Its option is `--FIELD` unless it has other `names`, of type `kind` (else
    the field's own, or a text that is `read`). `default` is a text where the field's is none.
    """

    help: str
    names: tuple[str, ...] = ()
    metavar: str | None = None
    kind: Any = None
    default: str | None = None
    least: int | None = None
    read: Callable[[str], object] | None = None
    is_argument: bool = False


def _read_drive(path: str) -> Drive:
    from ensign.experiment.compare.options import read_drive  # noqa: PLC0415  # imports much

    return read_drive(Path(path))


@dataclass(frozen=True, slots=True)
class Options:
    """The command line, read. What is None was left to ensign.

    Programs see their own one of `roots`, "" being this machine; `shell` is empty without one.
    Where the ends of slices find a program is `sampled`.
    """

    commands: Annotated[
        tuple[str, ...],
        Option(
            "Two commands or more; the first is the baseline. With --revisions or --environments "
            "one.",
            is_argument=True,
        ),
    ] = ()
    revisions: Annotated[
        str | None,
        Option(
            "Build two commits of the repository here, and race one command with each; A alone is "
            "compared with HEAD.",
            metavar="A..B",
        ),
    ] = None
    environments: Annotated[
        str | None,
        Option(
            "Race one command in root directories: host, debian:RELEASE, a directory or tar "
            "archive (with a slash), or names of --study.",
            metavar="A,B",
        ),
    ] = None
    study: Annotated[
        Path | None, Option("The study whose [environments] are named.", metavar="FILE")
    ] = None
    build: Annotated[
        str | None, Option("Builds the program in each checkout of --revisions.", metavar="COMMAND")
    ] = None
    files: Annotated[
        tuple[str, ...],
        Option(
            "More files of each checkout that the command of --revisions needs, beside the "
            "program, its libraries and the files that it names; may be given several times.",
            metavar="GLOB",
        ),
    ] = ()
    unconfined: Annotated[
        bool, Option("With --revisions: build and run as it is, with network and home folders.")
    ] = False
    names: Annotated[
        tuple[str, ...], Option("A name per command, in order.", names=("--name", "-n"))
    ] = ()
    setup: Annotated[
        tuple[str, ...], Option("Run once before the race; once, or per command.")
    ] = ()
    prepare: Annotated[tuple[str, ...], Option("Run before each execution, not measured.")] = ()
    cleanup: Annotated[
        tuple[str, ...], Option("Run once after the race; once, or per command.")
    ] = ()
    warmup: Annotated[int, Option("Executions before the measured ones.", least=0)] = 0
    shell: Annotated[
        str,
        Option(
            "Run commands by /bin/sh, or by SHELL (its start-up counts); 'none' is usual.",
            names=("--shell", "-S"),
            metavar="[=SHELL]",
            default="none",
            read=lambda shell: "" if shell == "none" else shell,
        ),
    ] = ""
    parameter_list: Annotated[
        tuple[str, ...],
        Option(
            "Each command once for each value (a,b,c) of {VAR}.",
            names=("--parameter-list", "-L"),
            metavar="VAR VALUES",
        ),
    ] = ()
    parameter_scan: Annotated[
        tuple[str, ...],
        Option(
            "Each command once for each number of {VAR}.",
            names=("--parameter-scan", "-P"),
            metavar="VAR MIN MAX",
        ),
    ] = ()
    parameter_step: Annotated[
        str | None,
        Option("Between numbers of a scan (default 1).", names=("--parameter-step-size", "-D")),
    ] = None
    input: Annotated[str | None, Option("File for standard input.")] = None
    output: Annotated[
        str | None,
        Option(
            "Standard output: 'pipe' (drained; default), 'null', 'inherit', or a file ({variant} "
            "in its name is filled in)."
        ),
    ] = None
    env: Annotated[tuple[str, ...], Option("NAME=VALUE for every command.")] = ()
    show_output: Annotated[bool, Option("Let commands print to the terminal.")] = False
    ignore_failure: Annotated[
        bool, Option("Measure commands that fail, too.", names=("--ignore-failure", "-i"))
    ] = False
    margin: Annotated[
        float | None, Option("Smallest difference that matters, such as 1%.", read=parse_share)
    ] = None
    precision: Annotated[
        float | None,
        Option(
            "Stop when the interval is ± this (default 0.5% without --budget).", read=parse_share
        ),
    ] = None
    budget_ns: Annotated[
        int | None,
        Option(
            "Racing time, such as 30s (default 30s, or more if needed).",
            names=("--budget",),
            read=parse_duration_ns,
        ),
    ] = None
    confirm: Annotated[
        bool,
        Option(
            "Race all in half of the budget, then the best one anew; claims come from that race "
            "alone: the best of several looks better than it is."
        ),
    ] = False
    runs: Annotated[
        int | None, Option("So many executions of each, exactly.", names=("--runs", "-r"))
    ] = None
    min_runs: Annotated[
        int | None, Option("So many executions of each at least.", names=("--min-runs", "-m"))
    ] = None
    max_runs: Annotated[
        int | None, Option("So many executions of each at most.", names=("--max-runs", "-M"))
    ] = None
    twin: Annotated[
        bool,
        Option(
            "Race a second copy of the baseline, which shows what can be trusted, and halves the "
            "baseline's noise.",
            names=("--twin/--no-twin",),
        ),
    ] = True
    group_size: Annotated[
        int | None,
        Option(
            "So many commands race at a time, besides the baseline and its twin (default: all, or "
            "as many as memory holds).",
            least=1,
        ),
    ] = None
    slice_ns: Annotated[
        int, Option("Length of a slice.", names=("--slice",), default="5ms", read=parse_duration_ns)
    ] = DEFAULT_SLICE_NS
    mode: Annotated[
        Mode | None,
        Option(
            "Slices, or whole executions (default: by a pilot run).",
            kind=Literal["interleaved", "alternating"],
            read=Mode,
        ),
    ] = None
    metric: Annotated[Metric | None, Option("CPU or wall time (default: by a pilot run).")] = None
    level: Annotated[float, Option("Confidence: 0.9, 0.95, 0.975 or 0.99.")] = 0.95
    seed: Annotated[int, Option("Decides the order of slices.", least=0)] = 0
    cpus: Annotated[
        tuple[int, ...] | None,
        Option("CPUs of the programs under test, such as 1 or 0-3.", read=parse_cpus),
    ] = None
    load: Annotated[
        tuple[str, ...], Option("Load generator: the commands are servers; both contain {port}.")
    ] = ()
    drive: Annotated[
        Drive | None,
        Option(
            "Instead of --load: what ensign's own load generator sends (TOML, as a study's "
            "'drive'); it can keep latency.",
            metavar="FILE",
            read=_read_drive,
        ),
    ] = None
    preload: Annotated[
        tuple[str, ...], Option("Fill the server before the load; not measured.")
    ] = ()
    ready: Annotated[str, Option("A server is ready when: 'port', or 'output:PATTERN'.")] = "port"
    operations: Annotated[
        str | None, Option("Operations per run: a number, or a pattern in the output.")
    ] = None
    score: Annotated[
        Score | None,
        Option("Compare what the output says: a pattern; its group is the number.", read=Score),
    ] = None
    benchmarks: Annotated[
        str,
        Option(
            "The programs are benchmarks made with google-benchmark, pyperf, criterion or "
            "libtest: each benchmark is compared.",
            metavar="FRAMEWORK",
        ),
    ] = ""
    expected: Annotated[
        str | None, Option("What each command must print; who does not is out.", metavar="FILE")
    ] = None
    expected_sha256: Annotated[
        str | None, Option("SHA-256 of what each command must print.", metavar="HASH")
    ] = None
    unit: Annotated[str, Option("Unit of the score, for reports.")] = ""
    better: Annotated[Better | None, Option("Which score is better.")] = None
    workloads: Annotated[
        tuple[str, ...],
        Option(
            "Stands for {workload} in commands (else at their end); several are raced in rounds.",
            names=("--workload",),
            metavar="[NAME=]TEXT",
        ),
    ] = ()
    bundle: Annotated[
        Path | None, Option("All raw data in one file, for 'ensign report' later.", metavar="FILE")
    ] = None
    time_unit: Annotated[
        str,
        Option(
            "Unit of times in tables (default: as fits).",
            names=("--time-unit", "-u"),
            kind=Literal["second", "millisecond", "microsecond"],
        ),
    ] = ""
    deadline_ns: Annotated[
        int | None,
        Option(
            "Longest run of a command (default: the budget, else 10m).",
            names=("--deadline",),
            read=parse_duration_ns,
        ),
    ] = None
    ports: Annotated[
        tuple[int, int],
        Option("Where {port} is taken from (default 20000-29999).", read=parse_ports),
    ] = DEFAULT_PORTS
    race_same: Annotated[
        bool, Option("Race commands that run the same program, too: a test of the measurement.")
    ] = False
    share_machine: Annotated[bool, Option("Do not wait for other races on this machine.")] = False
    confine: Annotated[
        bool,
        Option(
            "Run the commands without network, home folders and other processes, all files "
            "read-only but {tmp}."
        ),
    ] = False
    roots: tuple[str, ...] = ()
    sampled: bool = False

    @property
    def scored(self) -> bool:
        """True if what programs say of their own speed is compared."""
        return self.score is not None or bool(self.benchmarks)

    @property
    def serves(self) -> bool:
        """True if the commands are servers."""
        return bool(self.load) or self.drive is not None

    @property
    def copies(self) -> int:
        """Number of times that the baseline takes part."""
        return 2 if self.twin else 1

    @property
    def least_runs(self) -> int:
        """Least number of executions of each."""
        return self.runs or self.min_runs or 0

    @property
    def most_runs(self) -> int | None:
        """Largest number of executions of each; None: as many as the budget holds."""
        return self.runs or self.max_runs

    @property
    def run_deadline_ns(self) -> int:
        """Longest time of one run of a command: as asked, or the budget, or ten minutes."""
        return self.deadline_ns or self.budget_ns or _LONGEST_RUN_NS


@dataclass(frozen=True, slots=True)
class DeclaredOption:
    """A field that is an option: its name, its type, how it is given, and its default."""

    name: str
    kind: Any
    option: Option
    default: Any

    @property
    def names(self) -> tuple[str, ...]:
        """All its names on the command line."""
        return self.option.names or (f"--{self.name.replace('_', '-')}",)


def declared_options() -> tuple[DeclaredOption, ...]:
    """All options in the order of the help."""
    # Whatever a drive is, it is read from a file; its module imports much.
    hints = get_type_hints(Options, localns={"Drive": object}, include_extras=True)
    return tuple(
        DeclaredOption(field.name, hint.__origin__, hint.__metadata__[0], field.default)
        for field in fields(Options)
        if hasattr(hint := hints[field.name], "__metadata__")
    )
