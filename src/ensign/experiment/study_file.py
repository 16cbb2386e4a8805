"""Places of each key of a TOML text; tomllib has the values, tree-sitter the lines. Pure."""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import tree_sitter_toml
from pydantic import ValidationError
from tree_sitter import Language, Node, Parser

from ensign.builders.systems.registry import system_problems, with_recipe_of_system
from ensign.host.regular_file import read_text
from ensign.model.cluster import Cluster, ClusterFile
from ensign.model.errors import InputError, StudyError
from ensign.model.quoting import shortened
from ensign.model.study import Study
from ensign.model.study_build import CheckSection
from ensign.model.study_parameter import write_out_parameters
from ensign.model.study_problems import (
    Origins,
    Problem,
    Where,
    check_shape,
    is_repeated,
    shape_problems,
    suggestion,
)
from ensign.model.study_race import Race
from ensign.model.study_rules import absent_cpus, broken_rules
from ensign.model.study_source import PathSource
from ensign.model.study_suite import Suite
from ensign.model.study_workload import asked_curves
from ensign.model.trials import SAMPLED_SLICE
from ensign.model.units import parse_duration_ns, parse_share
from ensign.model.variants import Variant
from ensign.variants.expand import expand as variants_of
from ensign.variants.expand import expansion_problems
from ensign.workloads.ends import as_commands
from ensign.workloads.inputs import split_inputs
from ensign.workloads.rules import workload_problems

KeyPath = tuple[str | int, ...]

_PUNCTUATION = frozenset(("[", "]", "[[", "]]", ",", "{", "}", "=", ".", "comment"))


@dataclass(frozen=True, slots=True)
class Positions:
    """Lines (from 1) of the keys, tables and list items of a text, by path."""

    lines: Mapping[KeyPath, int]

    def line(self, path: KeyPath) -> int | None:
        """The line of a path, or of the nearest thing around it; None for an empty file."""
        for length in range(len(path), 0, -1):
            if path[:length] in self.lines:
                return self.lines[path[:length]]
        return 1 if self.lines else None

    def reordered(self, origins: Mapping[KeyPath, tuple[int, ...]]) -> Positions:
        """The same for lists of which some items were repeated: which item each one was."""
        lines = dict(self.lines)
        for start, indices in origins.items():
            length = len(start)
            below = {path: line for path, line in lines.items() if path[:length] == start}
            items = {path: line for path, line in below.items() if len(path) > length}
            lines = {path: line for path, line in lines.items() if path not in items}
            for now, was in enumerate(indices):
                for path, line in items.items():
                    if path[length] == was:
                        lines[(*start, now, *path[length + 1 :])] = line
        return Positions(lines)


def find_positions(text: str) -> Positions:
    """The positions in a text that tomllib accepts."""
    parser = Parser(Language(tree_sitter_toml.language()))
    root = parser.parse(text.encode()).root_node
    lines: dict[KeyPath, int] = {}
    for path, line in _document(root):
        lines.setdefault(path, line)
    return Positions(lines)


def without_tables(text: str, names: Collection[str]) -> str:
    """The text without the keys and tables of these names."""
    raw = text.encode()
    root = Parser(Language(tree_sitter_toml.language())).parse(raw).root_node
    kept, end = b"", 0
    for node in root.children:
        heads = [child for child in node.children if child.type in _KEY_TYPES]
        if heads and _keys(heads[0])[0] in names:
            kept += raw[end : node.start_byte]
            end = node.end_byte
    return (kept + raw[end:]).decode()


def _document(root: Node) -> Iterator[tuple[KeyPath, int]]:
    counts: dict[KeyPath, int] = {}
    for node in root.children:
        if node.type == "pair":
            yield from _pair(node, ())
        elif node.type in ("table", "table_array_element"):
            header = next(child for child in node.children if child.type in _KEY_TYPES)
            path = _table_path(_keys(header), counts, new=node.type == "table_array_element")
            yield from _prefixes(path, header)
            for child in node.children:
                if child.type == "pair":
                    yield from _pair(child, path)


_KEY_TYPES = frozenset(("bare_key", "quoted_key", "dotted_key"))


def _table_path(keys: tuple[str, ...], counts: dict[KeyPath, int], *, new: bool) -> KeyPath:
    path: KeyPath = ()
    for depth, key in enumerate(keys):
        path = (*path, key)
        if new and depth == len(keys) - 1:
            counts[path] = counts.get(path, -1) + 1
        if path in counts:
            path = (*path, counts[path])
    return path


def _pair(node: Node, table: KeyPath) -> Iterator[tuple[KeyPath, int]]:
    parts = [child for child in node.children if child.type not in _PUNCTUATION]
    path = (*table, *_keys(parts[0]))
    yield from _prefixes(path, parts[0])
    if len(parts) > 1:
        yield from _value(parts[1], path)


def _value(node: Node, path: KeyPath) -> Iterator[tuple[KeyPath, int]]:
    if node.type == "array":
        items = [child for child in node.children if child.type not in _PUNCTUATION]
        for index, item in enumerate(items):
            yield (*path, index), _line(item)
            yield from _value(item, (*path, index))
    elif node.type == "inline_table":
        for child in node.children:
            if child.type == "pair":
                yield from _pair(child, path)


def _prefixes(path: KeyPath, node: Node) -> Iterator[tuple[KeyPath, int]]:
    for length in range(1, len(path) + 1):
        yield path[:length], _line(node)


def _keys(node: Node) -> tuple[str, ...]:
    if node.type == "dotted_key":
        parts = (_keys(child) for child in node.children if child.type in _KEY_TYPES)
        return tuple(key for part in parts for key in part)
    text = (node.text or b"").decode()
    return tuple(tomllib.loads(f"{text} = 0"))


def _line(node: Node) -> int:
    return node.start_point[0] + 1


_MOST_PROBLEMS = 10
_LONGEST = 1000
_PLACE = re.compile(r"\s*\(at (?:line (\d+), column (\d+)|end of document)\)$")


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Options of the command line over the study: these workloads alone, other limits.

    What is None, or no workload, leaves the study as it is; so does `confined`.
    """

    workloads: tuple[str, ...] = ()
    budget: str | None = None
    precision: str | None = None
    confined: bool = True


NO_OPTIONS = RunOptions()


@dataclass(frozen=True, slots=True)
class StudyFile:
    """A checked study, its variants (baseline first) and where its keys stand.

    `path` is as the user wrote it; relative paths in the study start at its folder. `suite` is
    where workloads of the study were taken from, `own` the study as its file says, where the
    command line says otherwise. `host` is the one of several whose results are meant.
    """

    path: Path
    text: str
    study: Study
    variants: tuple[Variant, ...]
    positions: Positions
    suite: Suite | None = None
    own: Study | None = None
    host: str = ""

    @property
    def folder(self) -> Path:
        """The folder that the study's relative paths start at."""
        return self.path.absolute().parent

    @property
    def folders(self) -> tuple[Path, ...]:
        """Folders in which what lies is the study's: its own, and that of its source."""
        source = self.study.source
        own = [self.folder / source.path] if isinstance(source, PathSource) else []
        return (self.folder, *own)

    def with_workloads(self, names: Sequence[str]) -> StudyFile:
        """The study with these workloads alone; all of them where none is named. InputError."""
        if not names:
            return self
        known = [workload.name for workload in self.study.workloads]
        curves = {curve.curve: curve.workloads for curve in asked_curves(self.study.workloads)}
        names = [point for name in names for point in curves.get(name, (name,))]
        for name in names:
            if name not in known:
                near = suggestion(name, known)
                raise InputError(f"{self.path} has no workload called '{name}'{near}")
        study = self.study
        check = [name for name in study.race.slice_check if name in names]
        chosen = study.model_copy(
            update={
                "workloads": [workload for workload in study.workloads if workload.name in names],
                "race": study.race.model_copy(update={"slice_check": check}),
                "check": _check_of(study, names),
            }
        )
        return replace(self, study=chosen, own=self.own or study)

    def with_pair(self, baseline: str, variant: str, budget: str) -> StudyFile:
        """The study of two of its variants, sampled, in slices that are short. InputError."""
        by_name = {each.name: each for each in self.variants}
        for name in (baseline, variant):
            if name not in by_name:
                near = suggestion(name, list(by_name))
                raise InputError(f"{self.path} has no variant called '{name}'{near}")
        if baseline == variant:
            raise InputError(f"'{baseline}' is both variants: name two")
        study = self.study
        own = hashlib.sha256(f"{baseline}\n{variant}".encode()).hexdigest()[:8]
        changed = study.model_copy(
            update={
                "name": f"{study.name}-explain-{own}",
                "title": f"{variant} against {baseline}",
                "race": self.sampled_race(budget),
            }
        )
        variants = (by_name[baseline], by_name[variant])
        return replace(self, study=changed, variants=variants, own=self.own or study)

    def sampled_race(self, budget: str) -> Race:
        """How the study races, but looked into: sampled, in slices that are short, once."""
        race = self.study.race
        short = {} if "slice" in race.model_fields_set else {"slice": SAMPLED_SLICE}
        once: dict[str, object] = {
            "samples": True,
            "confirm": None,
            "slice_check": [],
            "budget": budget,
        }
        return race.model_copy(update={**once, **short})

    def with_metric(self, metric: str) -> StudyFile:
        """The study by the metric that it was raced for; "" leaves what it says."""
        if not metric:
            return self
        race = self.study.race.model_copy(update={"metric": metric})
        return replace(self, study=self.study.model_copy(update={"race": race}))

    def with_relinks(self, count: int) -> StudyFile:
        """The study with so many relinks of each variant."""
        layouts = self.study.layouts.model_copy(update={"count": count})
        return replace(self, study=self.study.model_copy(update={"layouts": layouts}))

    def with_options(self, options: RunOptions) -> StudyFile:
        """The study as it is asked for. InputError as `with_workloads` and `with_limits`."""
        file = self.with_workloads(options.workloads)
        limits = {"budget": options.budget, "precision": options.precision}
        file = file.with_limits({name: text for name, text in limits.items() if text is not None})
        return file if options.confined else file.unconfined()

    def with_limits(self, said: Mapping[str, str]) -> StudyFile:
        """The study with another budget or precision. InputError where one is none."""
        for name, text in said.items():
            parse = parse_duration_ns if name == "budget" else parse_share
            try:
                value = parse(text)
            except InputError as error:
                raise InputError(f"--{name}: {error}") from None
            if value <= 0:
                raise InputError(f"--{name}: '{text}' must be above 0")
        race = self.study.race.model_copy(update=said)
        limited = self.study.model_copy(update={"race": race})
        return replace(self, study=limited, own=self.own or self.study)

    def with_executions(self, most: int) -> StudyFile:
        """The study with at most so many executions of a workload in a round, unless it says."""
        race = self.study.race
        if race.executions is not None:
            return self
        race = race.model_copy(update={"executions": most})
        return replace(self, study=self.study.model_copy(update={"race": race}))

    def unconfined(self) -> StudyFile:
        """The study with its programs run as they are."""
        sandbox = self.study.sandbox.model_copy(update={"confined": False})
        freed = self.study.model_copy(update={"sandbox": sandbox})
        return replace(self, study=freed, own=self.own or self.study)

    def error(self, text: str, *where: str | int) -> StudyError:
        """An error about a key that shows later, such as a compiler that is not installed."""
        return StudyError(text, path=str(self.path), line=self.positions.line(where))

    def errors(self, problems: Sequence[Problem]) -> StudyError:
        """One error of several mistakes, each with its line."""
        return _combined(problems, self.positions, self.path)

    def place_of(self, workload: str, table: str = "") -> Where:
        """The keys that lead to a workload, or to the suite that has it.

        `table` is what [[workloads]] stands in, such as `training`.
        """
        study = self.own or self.study
        known = study.workloads
        if table:
            known = [] if study.training is None else study.training.workloads
        start: Where = (table, "workloads") if table else ("workloads",)
        places = [(*start, index) for index, one in enumerate(known) if one.name == workload]
        return next((place for place in places if place in self.positions.lines), ("suite",))


def _check_of(study: Study, names: Sequence[str]) -> CheckSection | None:
    """The check without the output of workloads that are left out."""
    if study.check is None or study.check.same_output is None:
        return study.check
    same = [name for name in study.check.same_output if name in names]
    return study.check.model_copy(update={"same_output": same})


Expand = Callable[[Study], Study]


def read_study(
    path: Path, *, machine_cpus: frozenset[int] | None = None, expand: Expand | None = None
) -> StudyFile:
    """Read and check a study file; StudyError with at most ten lines, one per mistake.

    `machine_cpus` are the CPUs that the study may name; None leaves that unchecked. `expand` makes
    workloads of the study's [suite]; without it they are missing from the study.
    """
    try:
        text = read_text(path)
    except InputError as error:
        raise StudyError(str(error), path=str(path)) from None
    return parse_study(text, path, machine_cpus=machine_cpus, expand=expand)


def read_cluster(path: Path) -> Cluster:
    """The hosts that a file names: in its table [cluster], or in the whole of it. StudyError."""
    text = ""
    try:
        text = read_text(path)
        mapping = tomllib.loads(text)
    except InputError as error:
        raise StudyError(str(error), path=str(path)) from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise _not_toml(error, text, path) from None
    start = ("cluster",) if "cluster" in mapping else ()
    if not start and "workloads" in mapping:
        raise StudyError("the study has no table [cluster]: name hosts in one", path=str(path))
    try:
        table = mapping["cluster"] if start else mapping
        return ClusterFile.model_validate({"cluster": table}).cluster
    except ValidationError as error:
        problems = shape_problems(error)
    kept = [Problem((*start, *problem.where[1:]), problem.text) for problem in problems]
    raise _combined(kept, find_positions(text), path)


def parse_study(
    text: str,
    path: Path,
    *,
    machine_cpus: frozenset[int] | None = None,
    expand: Expand | None = None,
) -> StudyFile:
    """The study in a text; `path` is for messages and relative paths. StudyError.

    Pure where `expand` is.
    """
    try:
        mapping = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise _not_toml(error, text, path) from None
    written = write_out_parameters(mapping)
    positions = find_positions(text).reordered(written.origins)
    study, problems = check_shape(written.mapping, written.origins)
    if study is None:
        raise _combined(_first_of(problems, written.origins), positions, path)
    split = split_inputs(study)
    if split.problems:
        raise _combined(_first_of(split.problems, written.origins), positions, path)
    study, positions = split.study, positions.reordered(split.origins)
    origins = _through(split.origins, written.origins)
    suite = study.suite
    if suite is not None and expand is not None:
        try:
            study = expand(study)
        except InputError as error:
            line = positions.line(("suite",))
            raise StudyError(str(error), path=str(path), line=line) from None
    problems = (
        *system_problems(study),
        *broken_rules(study),
        *workload_problems(study),
        *expansion_problems(study),
    )
    problems = _first_of(problems, origins)
    if machine_cpus is not None:
        problems = (*problems, *absent_cpus(study, machine_cpus))
    if problems:
        raise _combined(problems, positions, path)
    study = as_commands(with_recipe_of_system(study))
    return StudyFile(path, text, study, variants_of(study), positions, suite)


def _through(later: Origins, earlier: Origins) -> Origins:
    """Which of the items that were written first each item is, where lists grew twice."""
    both = {
        start: tuple(earlier[start][index] for index in indices) if start in earlier else indices
        for start, indices in later.items()
    }
    return {**earlier, **both}


def _first_of(problems: Sequence[Problem], origins: Origins) -> tuple[Problem, ...]:
    """Each mistake once, though several tests were made of what has it."""
    return tuple(problem for problem in problems if not is_repeated(problem.where, origins))


def _not_toml(error: Exception, text: str, path: Path) -> StudyError:
    message = str(error) if isinstance(error, tomllib.TOMLDecodeError) else "nested too deeply"
    place = _PLACE.search(message)
    problem = _PLACE.sub("", message)
    if place is None:
        return StudyError(f"not TOML: {problem}", path=str(path))
    if place[1] is None:
        last = text.count("\n") + 1 - text.endswith("\n")
        return StudyError(f"not TOML: {problem}, at the end of the file", path=str(path), line=last)
    return StudyError(f"not TOML: {problem}, column {place[2]}", path=str(path), line=int(place[1]))


def _combined(problems: Sequence[Problem], positions: Positions, path: Path) -> StudyError:
    def line(where: Where) -> int | None:
        return positions.line(where)

    ordered = sorted(problems, key=lambda problem: line(problem.where) or 0)
    shown = ordered if len(ordered) <= _MOST_PROBLEMS else ordered[: _MOST_PROBLEMS - 1]
    errors = [
        StudyError(shortened(problem.text, _LONGEST), path=str(path), line=line(problem.where))
        for problem in shown
    ]
    lines = [shortened(ordered[0].text, _LONGEST), *(str(error) for error in errors[1:])]
    if len(shown) < len(ordered):
        lines.append(f"{path}: … and {len(ordered) - len(shown)} more")
    return StudyError("\n".join(lines), path=str(path), line=errors[0].line)
