"""Problems of a study's workloads, of whatever kind they are. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ensign.model import placeholders
from ensign.model.errors import InputError
from ensign.model.study import Study
from ensign.model.study_problems import (
    Problem,
    Where,
    unknown,
    unknown_in_env,
    unknown_in_text,
    uses,
)
from ensign.model.study_workload import DriveStep, Workload
from ensign.workloads.drive import slice_problems
from ensign.workloads.registry import kind_of, suite_of_kind


def workload_problems(study: Study) -> tuple[Problem, ...]:
    """Every rule that the workloads of a well-shaped study break, those of its training too."""
    trained = () if study.training is None else study.training.workloads
    places: tuple[tuple[Where, Sequence[Workload]], ...] = (
        (("workloads",), study.workloads),
        (("training", "workloads"), trained),
    )
    return (
        *_suite(study),
        *slice_problems(study),
        *(
            problem
            for where, workloads in places
            for problem in (
                *_repeated_names(workloads, where),
                *_repeated_values(workloads, where),
                *_each(study, workloads, where),
            )
        ),
        *_training(trained),
    )


def _suite(study: Study) -> Iterator[Problem]:
    if study.suite is not None:
        try:
            suite_of_kind(study.suite.kind)
        except InputError as error:
            yield Problem(("suite", "kind"), f"'kind': {error}")


def _each(study: Study, workloads: Sequence[Workload], where: Where) -> Iterator[Problem]:
    for index, workload in enumerate(workloads):
        place = (*where, index)
        kinds = (workload.load, workload.drive, workload.command, workload.ends or None)
        if sum(kind is not None for kind in kinds) != 1:
            text = (
                f"workload '{workload.name}' needs exactly one of 'load', 'drive', 'command' and "
                "'ends'"
            )
            yield Problem(place, text)
            continue
        yield from _placeholders(study, workload, place)
        yield from _preload_drives(workload, place)
        yield from kind_of(workload).problems(study, workload, place)
        if workload.network is not None and not workload.ends:
            text = f"'network' of workload '{workload.name}' is between two 'ends', which it lacks"
            yield Problem((*place, "network"), text)


def _repeated_names(workloads: Sequence[Workload], where: Where) -> Iterator[Problem]:
    names = [workload.name for workload in workloads]
    for index, name in enumerate(names):
        if name in names[:index]:
            yield Problem((*where, index, "name"), f"'name': two workloads are called '{name}'")


def _repeated_values(workloads: Sequence[Workload], where: Where) -> Iterator[Problem]:
    """Curves of several workloads that have a value twice."""
    seen: dict[tuple[str, float], str] = {}
    for index, workload in enumerate(workloads):
        if workload.parameter is None:
            continue
        value = workload.parameter.values[0]
        other = seen.setdefault((workload.parameter.curve or workload.name, value), workload.name)
        if other != workload.name:
            text = f"'curve': '{other}' and '{workload.name}' are the same point of it"
            yield Problem((*where, index, "parameter", "curve"), text)


def _training(workloads: Sequence[Workload]) -> Iterator[Problem]:
    """A training whose number of requests is not chosen from a pilot."""
    for index, workload in enumerate(workloads):
        where = ("training", "workloads", index)
        sent = [
            *(workload.load or ()),
            *(word for argv in workload.preload_commands for word in argv),
        ]
        for key in ("setup", "cleanup"):
            if getattr(workload, key):
                text = f"'{key}' of training workload '{workload.name}': a training is no race; "
                yield Problem((*where, key), f"{text}'prepare' runs before it")
        if workload.requests is None and uses(sent, "requests"):
            text = f"training workload '{workload.name}' uses {{requests}}: add 'requests'"
            yield Problem(where, text)
        if workload.drive is not None and workload.fixed_requests is None:
            text = f"training workload '{workload.name}' has a 'drive': add 'requests'"
            yield Problem(where, text)


def _preload_drives(workload: Workload, where: Where) -> Iterator[Problem]:
    for index, step in enumerate(workload.preload):
        if isinstance(step, DriveStep) and step.drive.operations is None:
            text = f"a drive in 'preload' of workload '{workload.name}' needs 'operations'"
            yield Problem((*where, "preload", index, "drive"), text)


def _placeholders(study: Study, workload: Workload, where: Where) -> Iterator[Problem]:
    common = (*placeholders.PROGRAM, *placeholders.PLACES, *study.build.tools)
    with_requests = (*common, "requests")
    yield from unknown(workload.load or (), (*where, "load"), with_requests)
    yield from unknown(workload.command or (), (*where, "command"), common)
    yield from unknown(workload.prepare or (), (*where, "prepare"), common)
    yield from unknown(workload.setup or (), (*where, "setup"), ("variant",))
    yield from unknown(workload.cleanup or (), (*where, "cleanup"), ("variant",))
    for index, step in enumerate(workload.preload):
        argv = step if isinstance(step, list) else ()
        yield from unknown(argv, (*where, "preload", index), with_requests)
    yield from unknown(workload.server_args, (*where, "server_args"), common)
    yield from unknown_in_env(workload.env, (*where, "env"), common)
    if workload.folder is not None:
        yield from unknown_in_text(workload.folder, (*where, "folder"), common)
    for key, named in (("input", workload.stdin), ("output", workload.output)):
        if named is not None:
            yield from unknown_in_text(named, (*where, key), placeholders.PLACES)
