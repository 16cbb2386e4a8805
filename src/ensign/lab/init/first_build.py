"""The first build of a tree, with options that give programs."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from ensign.builders.request import BuildPorts
from ensign.builders.systems.build_system import Recognized
from ensign.builders.systems.debian import RULES as DEBIAN_RULES
from ensign.host.cache import Cache
from ensign.host.regular_file import read_regular
from ensign.lab.init.build_options import of_cargo, of_debian_rules
from ensign.lab.init.draft import Draft, DraftWorkload, draft_text
from ensign.lab.init.exploration import Exploration, explored
from ensign.lab.ports import Ports
from ensign.lab.study.prepare import build_ports
from ensign.lab.study_file import parse_study
from ensign.model.build_events import OnEvent
from ensign.model.errors import CommandFailed, InputError

_LARGEST_TEXT_BYTES = 1 << 18
_MOST_BUILDS = 3


@dataclass(frozen=True, slots=True)
class Callbacks:
    """Who is told what is being done."""

    on_event: OnEvent
    show: Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Building:
    """What a tree is built with, and who is told."""

    cache: Cache
    ports: Ports
    told: Callbacks


@contextmanager
def explored_with_programs(
    draft: Draft, file: Path, system: Recognized, building: Building
) -> Iterator[tuple[Draft, Exploration, BuildPorts]]:
    """The tree built with the first options that give programs: none, or those that it has for it.

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
        yielded = False
        try:
            with explored(study, system, ports, building.told.on_event) as exploration:
                if exploration.programs():
                    yielded = True
                    yield tried, exploration, ports
                    return
                more = exploration.more_options()
        except CommandFailed as error:
            if yielded:
                raise
            failure, more = (error if options == first else failure), ()
        if len(pending) < _MOST_BUILDS:
            more_of_it = (each for each in dict.fromkeys((rules, more)) if each)
            pending += [each for each in more_of_it if each not in pending]
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
