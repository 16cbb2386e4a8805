"""The first build of a tree, with options that give programs."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from ensign.builders.request import BuildPorts
from ensign.builders.systems.build_system import Recognized
from ensign.builders.systems.debian import RULES as DEBIAN_RULES
from ensign.experiment.ports import Ports
from ensign.experiment.study.prepare import build_ports
from ensign.experiment.study_file import parse_study
from ensign.host.cache import Cache
from ensign.host.regular_file import read_regular
from ensign.model.builds import OnEvent
from ensign.model.errors import CommandFailed, EnsignError, InputError
from ensign.tools.init.build_options import of_cargo, of_debian_rules
from ensign.tools.init.draft import Draft, DraftWorkload, draft_text
from ensign.tools.init.exploration import Exploration, explored

_LARGEST_TEXT_BYTES = 1 << 18
_MOST_BUILDS = 3
_MOST_SYSTEMS = 3
_SAID_OF_OTHERS = 4


@dataclass(frozen=True, slots=True)
class Callbacks:
    """Listener for what is being done."""

    on_event: OnEvent
    show: Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Building:
    """Tools that build a tree, and the listener."""

    cache: Cache
    ports: Ports
    told: Callbacks


@dataclass(frozen=True, slots=True)
class FirstBuild:
    """A draft that builds, what it built, and what it was built with."""

    draft: Draft
    exploration: Exploration
    ports: BuildPorts


@contextmanager
def explored_with_programs(
    drafts: Sequence[tuple[Draft, Recognized]], file: Path, building: Building
) -> Iterator[FirstBuild]:
    """The tree built by the first of its build systems that works here and gives programs.

    CommandFailed or InputError of the preferred one, with what the others said, where none does.
    """
    with ExitStack() as stack:
        yield _first_that_works(drafts, file, building, stack)


def _first_that_works(
    drafts: Sequence[tuple[Draft, Recognized]], file: Path, building: Building, stack: ExitStack
) -> FirstBuild:
    failures: list[tuple[str, EnsignError]] = []
    for draft, system in _ways(drafts):
        if system.system == "debian" and failures and isinstance(failures[0][1], InputError):
            break  # it builds, and makes no program: nor will its package, in more time
        notes = (*draft.notes, *(f"Not built {way}: {_short(error)}." for way, error in failures))
        try:
            return _with_programs(replace(draft, notes=notes), system, file, building, stack)
        except (CommandFailed, InputError) as error:
            inside = " in its source folder" if "in_source" in system.keys else ""
            failures.append((f"by {system.system}{inside}", error))
    raise _of_all(failures)


def _ways(drafts: Sequence[tuple[Draft, Recognized]]) -> Iterator[tuple[Draft, Recognized]]:
    """Each build system, and in the source folder where projects may work in no other."""
    for draft, system in drafts[:_MOST_SYSTEMS]:
        yield draft, system
        if system.system == "autotools" and "in_source" not in system.keys:
            keys = {**system.keys, "in_source": True}
            yield replace(draft, keys=keys), replace(system, keys=keys)


def _short(error: EnsignError) -> str:
    return str(error).splitlines()[0].rstrip(".")


def _of_all(failures: Sequence[tuple[str, EnsignError]]) -> EnsignError:
    """The first, and the beginning of what the others said."""
    (_, first), *others = failures
    told_lines = str(first).splitlines()
    for way, error in others:
        lines = [line for line in str(error).splitlines() if line not in told_lines]
        if any(not line.startswith("log: ") for line in lines):
            told_lines += [f"{way}:", *lines[:_SAID_OF_OTHERS]]
    return type(first)("\n".join(told_lines)) if others else first


def _with_programs(
    draft: Draft, system: Recognized, file: Path, building: Building, stack: ExitStack
) -> FirstBuild:
    """With the first options that give programs: none, or those that the tree has for it.

    Errors as `explored` without options, and InputError where no program comes of any.
    """
    folder = file.parent
    first = of_cargo(_text(folder / "Cargo.toml")) if system.system == "cargo" else ()
    pending: list[tuple[str, ...]] = [first]
    rules = of_debian_rules(_text(folder / DEBIAN_RULES), system.system)
    failure: CommandFailed | None = None
    for options in pending:  # which grows by what a tree says when it was built
        keys = {**draft.keys, "options": list(options)} if options else draft.keys
        notes = (*draft.notes, f"With {shlex.join(options)} it makes programs.") if options else ()
        tried = replace(draft, keys=keys, notes=notes or draft.notes)
        study = parse_study(_with_any_workload(tried), file)
        ports = build_ports(study, building.cache, building.ports)
        try:
            with ExitStack() as this:
                on_event = building.told.on_event
                exploration = this.enter_context(explored(study, system, ports, on_event))
                if exploration.programs():
                    stack.push(this.pop_all())
                    return FirstBuild(tried, exploration, ports)
                more = exploration.more_options()
                failure = failure or exploration.failed_quietly()
        except CommandFailed as error:
            failure, more = (error if options == first else failure), ()
        if len(pending) < _MOST_BUILDS:
            more_of_it = (way for way in dict.fromkeys((rules, more)) if way)
            pending += [way for way in more_of_it if way not in pending]
    if failure is not None:
        raise failure
    raise InputError(f"{folder}: the build made no program that could be run")


def _text(path: Path) -> str:
    try:
        return read_regular(path, _LARGEST_TEXT_BYTES).decode(errors="replace")
    except OSError:
        return ""


def _with_any_workload(draft: Draft) -> str:
    any_workload = DraftWorkload("any", ("{artifact}",))
    return draft_text(replace(draft, workload=any_workload), "ensign.toml")
