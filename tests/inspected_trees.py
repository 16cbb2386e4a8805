"""Trees that are configured, or built, and asked as `init` asks them, without a study."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from ensign.builders.first_error import first_error
from ensign.builders.inspection import ask_cmake, asked_of
from ensign.builders.open_tree import OpenedTree, opened_tree
from ensign.builders.request import BuildPorts, BuildRequest
from ensign.builders.revisions import obtain_sources
from ensign.builders.stage_runs import StageFailedError
from ensign.builders.systems.build_system import BUILD_FOLDER, Inspected, Recognized
from ensign.builders.systems.registry import with_recipe_of_system
from ensign.host.foreign_files import HostileFileError
from ensign.model.builds import ignore
from ensign.model.errors import InputError
from ensign.model.study import Study
from ensign.model.variants import Variant


@dataclass(frozen=True, slots=True)
class Inspection:
    """The subject: a folder, the compiler that it is built with, and how long it may take.

    `keys` are more of `[build]`, over those that recognition suggests.
    """

    folder: Path
    compiler: str
    deadline: str = "10m"
    keys: tuple[tuple[str, object], ...] = ()


def inspect_tree(wanted: Inspection, recognized: Recognized, ports: BuildPorts) -> Inspected:
    """Targets, tests and benchmarks of a tree by one of its build systems.

    Where the project's scripts fail, `notes` say so. InputError without the compiler.
    """
    request = _request(wanted, recognized)
    ports = replace(ports, meter=None)
    with ports.cache.temporary() as scratch:
        # What pins a source is written beside a study, and there is none.
        sources = obtain_sources(replace(request, path=scratch / "none.toml"), ports, ignore)
    with opened_tree(request, ports, sources, "inspection") as opened:
        ways: dict[str, Callable[[OpenedTree], None]] = {
            "cmake": _configured_by_cmake,
            "meson": _configured,
        }
        asked = None if request.study.build.in_source else ways.get(recognized.system)
        try:
            (asked or _built)(opened)
            return asked_of(opened, recognized)
        except StageFailedError as failed:
            error = first_error(failed.output, tree=opened.seen_as)
            why = str(failed) if error is None else error.said
            text = f"{recognized.system} cannot build this tree here: {why}"
            return Inspected(recognized, notes=(text,))
        except (HostileFileError, InputError) as error:
            return Inspected(recognized, notes=(str(error),))


def _request(wanted: Inspection, recognized: Recognized) -> BuildRequest:
    folder = wanted.folder.absolute()
    study = Study.model_validate(
        {
            "name": "inspection",
            "source": {"kind": "path", "path": str(folder)},
            "build": {
                "system": recognized.system,
                "artifact": BUILD_FOLDER,
                "deadline": wanted.deadline,
                **recognized.keys,
                **dict(wanted.keys),
            },
            "axes": {"compiler": [wanted.compiler]},
            "baseline": {"compiler": wanted.compiler},
        }
    )
    variant = Variant("inspection", wanted.compiler, "-O2")
    path = folder / "inspection.toml"
    return BuildRequest(with_recipe_of_system(study), path, (variant,), variant.name)


def _configured_by_cmake(opened: OpenedTree) -> None:
    opened.run(opened.stage.clean)
    ask_cmake(opened)
    opened.run(opened.stage.commands[:1])


def _configured(opened: OpenedTree) -> None:
    opened.run((*opened.stage.clean, *opened.stage.commands[:1]))


def _built(opened: OpenedTree) -> None:
    opened.run((*opened.stage.clean, *opened.stage.commands))
