"""Values that checks of a study share, and those that decide a check's outcome."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

from ensign.builders.build_context import BuildContext
from ensign.builders.build_results import BuildResult
from ensign.host.cache import key_of
from ensign.host.files import file_sha256, is_file, is_folder, tree_entries, tree_sha256
from ensign.model.errors import InputError
from ensign.model.study import Study
from ensign.model.study_build import CheckSection
from ensign.model.study_workload import Workload

_SCHEMA = 3


@dataclass(frozen=True, slots=True)
class CheckContext:
    """Values that all checks of a study share.

    `source` is the pristine tree and `source_sha256` its hash; relative paths of workloads start at
    `folder`. `baseline` was built, and has the tools. Workloads take `turns`: what they write in
    that folder is in the others' way. `revisions` has tree and hash of each revision that variants
    are built from.
    """

    study: Study
    check: CheckSection
    source: Path
    source_sha256: str
    folder: Path
    baseline: BuildResult
    build_context: BuildContext
    revisions: Mapping[str, tuple[Path, str]] = field(default_factory=dict)
    turns: Lock = field(default_factory=Lock, compare=False)

    def source_of(self, result: BuildResult) -> tuple[Path, str]:
        """The tree that a variant was built from, and its hash."""
        return self.revisions.get(_revision(result), (self.source, self.source_sha256))

    def may_print_otherwise(self, result: BuildResult) -> bool:
        """True if it is another program by intent, and nobody asked for the same output."""
        return self.check.same_output is None and _revision(result) != _revision(self.baseline)

    @property
    def workloads(self) -> tuple[Workload, ...]:
        """Those whose output is compared, as far as the baseline's is the same twice."""
        return compared_workloads(self.study, self.check)

    @property
    def tools(self) -> Mapping[str, str]:
        """Name and place in the tree of the baseline's tools."""
        return self.study.build.tools


def _undecided(check: CheckSection) -> set[str]:
    """Keys that have no part in the outcome: its deadline, and what is not asked for."""
    return {"deadline"} if check.package else {"deadline", "package"}


def _revision(result: BuildResult) -> str:
    return dict(result.facts.choices).get("revision", "")


def check_key(context: CheckContext, result: BuildResult) -> str:
    """The hash of all that decides how the check of a variant ends."""
    named, sandbox = _named(context), context.build_context.sandbox_key
    return key_of(
        {
            **({"named": named} if named else {}),
            **_of_tree(context, result),
            **({"sandbox": sandbox} if sandbox else {}),
            **({"may_print_otherwise": True} if context.may_print_otherwise(result) else {}),
            "schema": _SCHEMA,
            "source": context.source_of(result)[1],
            "place": context.build_context.sandboxes.build_path,
            "check": context.check.model_dump(mode="json", exclude=_undecided(context.check)),
            "artifact": [context.study.build.artifact, result.facts.loadable_sha256],
            **({"libraries": result.libraries} if result.libraries else {}),
            "kept": kept(context, result),
            "tools": {name: file_sha256(path) for name, path in context.baseline.tools.items()},
            "baseline": context.baseline.facts.loadable_sha256 if context.workloads else "",
            "workloads": [
                [
                    workload.name,
                    workload.command,
                    workload.stdin,
                    _input_sha256(context, workload),
                    *([workload.env] if workload.env else []),
                    *([_expected_sha256(context, workload)] if workload.has_expectation else []),
                ]
                for workload in context.workloads
            ],
        }
    )


def _of_tree(context: CheckContext, result: BuildResult) -> dict[str, object]:
    """Further keys that decide where a check runs in the build's own tree."""
    stage = result.stage
    if not context.check.in_build_tree or stage is None:
        return {}
    return {"tree": stage.key, "commands": stage.check_commands, "env": stage.env}


def _named(context: CheckContext) -> dict[str, str]:
    """Files and folders beside the study that commands name: their outputs are compared."""
    words = {word for workload in context.workloads for word in workload.own_texts if word}
    paths = {word: context.folder / word for word in sorted(words)}
    files = {word: file_sha256(path) for word, path in paths.items() if is_file(path)}
    rest = ((word, path) for word, path in paths.items() if word not in (*files, "."))
    return files | {word: tree_sha256(path) for word, path in rest if is_folder(path)}


def kept(context: CheckContext, result: BuildResult) -> dict[str, str]:
    """Files kept beside the artifact, which may be read when it runs."""
    if result.files is None or not context.study.takes_more_than_program:
        return {}
    apart = {context.study.build.artifact, *context.tools.values()}
    return {
        name: file_sha256(path)
        for name, path in tree_entries(result.files)
        if path.is_file() and name not in apart
    }


def _expected_sha256(context: CheckContext, workload: Workload) -> list[str]:
    """Hashes of what is expected: as the study says, and of the file."""
    file = "" if workload.expected_file is None else file_sha256(expected_path(context, workload))
    return [str(workload.expected_sha256 or ""), file]


def expected_path(context: CheckContext, workload: Workload) -> Path:
    """The file with what a workload must print. InputError where it is none."""
    path = context.folder / (workload.expected_file or "")
    if not is_file(path):
        raise InputError(f"'expected' of workload '{workload.name}': there is no file {path}")
    return path


def _input_sha256(context: CheckContext, workload: Workload) -> str:
    if workload.stdin is None:
        return ""
    path = context.folder / workload.stdin
    if path.is_dir():
        return tree_sha256(path)
    return file_sha256(path) if path.is_file() else ""


def compared_workloads(study: Study, check: CheckSection) -> tuple[Workload, ...]:
    """The workloads that a check names, or all whose output can be compared."""
    named = check.same_output
    if named is None:
        # What prints its own speed prints something else in each run.
        return tuple(
            workload
            for workload in study.workloads
            if workload.has_expectation or (comparable(workload) and not workload.scored)
        )
    return tuple(
        workload
        for workload in study.workloads
        if workload.has_expectation or workload.name in named
    )


def comparable(workload: Workload) -> bool:
    """True if it has an output of its own, and can be run outside a race."""
    return workload.command is not None and not workload.race_only
