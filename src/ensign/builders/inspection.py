"""Looking at a source tree through its build system: it runs the project's own scripts, confined.

CMake and Meson are configured and asked. Autotools and make cannot be asked, so the tree is built
once, and what came of that is looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from ensign.builders.build import (
    build_context_of,
    find_toolchains,
    place_of,
    sandboxes_of,
)
from ensign.builders.build_context import Bounds, Runner
from ensign.builders.build_stage import environment_of
from ensign.builders.commands import Commands, with_jobs
from ensign.builders.plan import plan_builds
from ensign.builders.request import BuildPorts, BuildRequest
from ensign.builders.revisions import obtain_sources
from ensign.builders.running import Run, StageFailedError
from ensign.builders.sandboxes import Sandbox
from ensign.builders.stages import Stage
from ensign.builders.systems import introspection
from ensign.builders.systems.build_system import BUILD_FOLDER, Recognized
from ensign.builders.systems.inspected import Inspected, SuiteCommand, Target
from ensign.builders.systems.registry import with_recipe_of_system
from ensign.host.files import tree_entries
from ensign.host.foreign_files import HostileFileError, read_foreign
from ensign.host.processes import read_tail
from ensign.model.build_events import ignore
from ensign.model.errors import InputError
from ensign.model.quoting import shortened
from ensign.model.study import Study
from ensign.model.variants import Variant
from ensign.proof.loaded_bytes import read_dynamic

_MOST_BYTES = 2**26
_MOST_TARGETS = 2000
_LONGEST_REASON = 300
_QUERY = ".cmake/api/v1/query/codemodel-v2"
_REPLIES = ".cmake/api/v1/reply"
_CTEST = ("ctest", "--test-dir", BUILD_FOLDER, "--show-only=json-v1")


@dataclass(frozen=True, slots=True)
class Inspection:
    """What is to be looked at: a folder, the compiler that it is built with, and how long.

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
    toolchains = find_toolchains(request, ports)
    with ports.cache.temporary() as scratch:
        # What pins a source is written beside a study, and there is none.
        sources = obtain_sources(replace(request, path=scratch / "none.toml"), ports, ignore)
    source = sources.first
    sandboxes = sandboxes_of(request, ports, toolchains)
    place = place_of(sources.hashes, sandboxes, request, ports)
    plan = plan_builds(request.study, request.variants, request.baseline, toolchains, place)
    stage = plan.stage(plan.stage_of[request.baseline])
    context = build_context_of(request, ports, sandboxes, place)
    log = context.new_log("inspection", stage.key)
    with context.sandboxes.sandbox() as sandbox:
        context.copy_pinned(source.tree, sandbox.tree, source.sha256)
        ends_ns = context.clock.monotonic_ns() + stage.deadline_ns
        bounds = Bounds.of(sandbox, ends_ns, stage.disk_bytes)
        runner = Runner(context, sandbox, bounds, log, environment_of(stage, context))
        looker = _Looker(Run(stage, runner), stage, sandbox, ports.cores, source.tree)
        ways: dict[str, Callable[[], Inspected]] = {
            "cmake": partial(looker.cmake, recognized),
            "meson": partial(looker.meson, recognized),
        }
        try:
            asked = None if request.study.build.in_source else ways.get(recognized.system)
            found = (asked or partial(looker.built, recognized))()
        except StageFailedError as failed:
            why = shortened(_reason(read_tail(log)), _LONGEST_REASON) or str(failed)
            text = f"{recognized.system} cannot build this tree here: {why}"
            return Inspected(recognized, notes=(text,))
        except (HostileFileError, InputError) as error:
            return Inspected(recognized, notes=(str(error),))
    log.unlink(missing_ok=True)
    return found


def _reason(tail: str) -> str:
    """The line of a log that says most likely why it ends there; empty without one."""
    lines = [line.strip() for line in tail.splitlines() if line.strip()]
    for index in reversed(range(len(lines))):
        said = lines[index].lower()
        if "error" in said and "errors occurred" not in said and not said.startswith("make"):
            following = lines[index + 1 : index + 2] if lines[index].endswith(":") else []
            return " ".join((lines[index], *following))
    return ""


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


@dataclass(frozen=True, slots=True)
class _Looker:
    run: Run
    stage: Stage
    sandbox: Sandbox
    cores: int
    source: Path

    @property
    def _built(self) -> Path:
        return self.sandbox.tree / BUILD_FOLDER

    @property
    def _root(self) -> str:
        return self.run.place.seen_as

    def cmake(self, recognized: Recognized) -> Inspected:
        """By the file API, and by ctest, which knows no command of a program that is not there."""
        self.run.commands(self.stage.clean)
        query = self._built / _QUERY
        query.parent.mkdir(parents=True)
        query.touch()
        self._commands(self.stage.commands[:1])
        replies = sorted((self._built / _REPLIES).glob("target-*.json"))[:_MOST_TARGETS]
        found = (introspection.cmake_target(read_foreign(each, _MOST_BYTES)) for each in replies)
        targets = tuple(each for each in found if each is not None)
        self._pretend(targets)
        answer = self.sandbox.temporary / "tests.json"
        outcome = self.run.runner.run(_CTEST, stdout=answer)
        if not outcome.ok:
            return Inspected(recognized, targets, notes=(f"ctest {outcome.describe()}",))
        tests = introspection.ctest_tests(read_foreign(answer, _MOST_BYTES), self._root)
        return Inspected(recognized, targets, tests)

    def _pretend(self, targets: Sequence[Target]) -> None:
        for each in targets:
            path = self.sandbox.tree / each.path
            folder = path.parent.resolve()
            if each.kind == "program" and folder.is_relative_to(self.sandbox.tree.resolve()):
                folder.mkdir(parents=True, exist_ok=True)
                with suppress(FileExistsError):
                    path.touch(mode=0o755, exist_ok=False)

    def meson(self, recognized: Recognized) -> Inspected:
        """By the files that `meson introspect` would print."""
        self._commands((*self.stage.clean, *self.stage.commands[:1]))

        def said(name: str) -> bytes:
            return read_foreign(self._built / f"meson-info/intro-{name}.json", _MOST_BYTES)

        def suite(name: str) -> tuple[SuiteCommand, ...]:
            return introspection.meson_tests(said(name), self._root)

        targets = introspection.meson_targets(said("targets"), self._root)
        return Inspected(recognized, targets, suite("tests"), suite("benchmarks"))

    def built(self, recognized: Recognized) -> Inspected:
        """By what a build leaves."""
        self._commands((*self.stage.clean, *self.stage.commands))
        return Inspected(recognized, tuple(_made(self.sandbox.tree, self.source)))

    def _commands(self, commands: Commands) -> None:
        self.run.commands(with_jobs(commands, self.cores))


def _made(tree: Path, source: Path) -> Iterator[Target]:
    """Programs and shared libraries that are in the tree, and did not come with the source."""
    count = 0
    for name, path in tree_entries(tree):
        if path.is_symlink() or not path.is_file() or (source / name).exists():
            continue
        dynamic = read_dynamic(path)
        if dynamic is None or (not dynamic.is_program and ".so" not in path.name):
            continue
        count += 1
        if count > _MOST_TARGETS:
            return
        yield Target(path.name, "program" if dynamic.is_program else "shared library", name)
