"""A source tree in a sandbox, to be configured or built once and looked at; nothing stays."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from ensign.builders.build_context import Bounds, Runner
from ensign.builders.build_place import build_context_of, place_of, sandboxes_of
from ensign.builders.build_stage import environment_of
from ensign.builders.commands import Commands, with_jobs
from ensign.builders.plan import plan_builds
from ensign.builders.request import BuildPorts, BuildRequest
from ensign.builders.revisions import SourceTrees
from ensign.builders.sandboxes import Sandbox
from ensign.builders.stage_runs import Run
from ensign.builders.stages import Stage
from ensign.builders.systems.build_system import Target
from ensign.builders.toolchains_here import find_toolchains
from ensign.host.tree_walk import passed_over, walk
from ensign.proof.loaded_bytes import read_dynamic

_MOST_FILES = 2000
# What build systems make to find out what a compiler can do, and keep, or before they copy it.
_NO_PRODUCTS = (
    "conftest",
    "CMakeFiles",
    "CMakeTmp",
    ".git",
    "meson-private",
    "ensign-build/cargo/",
)


@dataclass(frozen=True, slots=True)
class OpenedTree:
    """A copy of a source in its sandbox, and the stage that builds the baseline from it."""

    stage: Stage
    runner: Runner
    source: Path
    cores: int

    @property
    def sandbox(self) -> Sandbox:
        """Path of the copy."""
        return self.runner.sandbox

    @property
    def tree(self) -> Path:
        """The copy, as the host sees it."""
        return self.sandbox.tree

    @property
    def seen_as(self) -> str:
        """Path of the copy as commands see it."""
        return self.runner.build_context.sandboxes.build_path

    def run(self, commands: Commands) -> None:
        """Run them one after the other. StageFailedError."""
        Run(self.stage, self.runner).commands(with_jobs(commands, self.cores))

    def made(self) -> tuple[Target, ...]:
        """Programs and shared libraries that are there and did not come with the source."""
        return tuple(made_targets(self.tree, self.source))


@contextmanager
def opened_tree(
    request: BuildRequest, ports: BuildPorts, sources: SourceTrees, kind: str
) -> Iterator[OpenedTree]:
    """Open the source of a request's baseline; nothing was run yet.

    No call is recorded. The log, `kind`-….log in the cache, stays where the block ends by an error.
    """
    toolchains = find_toolchains(request, ports)
    sandboxes = sandboxes_of(request, ports, toolchains)
    place = replace(place_of(sources.hashes, sandboxes, request, ports), recorder_path="")
    plan = plan_builds(request.study, request.variants, request.baseline, toolchains, place)
    stage = plan.stage(plan.stage_of[request.baseline])
    context = replace(build_context_of(request, ports, sandboxes, place), meter=None)
    log = context.new_log(kind, stage.key)
    source = sources.first
    with sandboxes.sandbox() as sandbox:
        context.copy_pinned(source.tree, sandbox.tree, source.sha256)
        ends_ns = context.clock.monotonic_ns() + stage.deadline_ns
        bounds = Bounds.of(sandbox, ends_ns, stage.disk_bytes)
        runner = Runner(context, sandbox, bounds, log, environment_of(stage, context))
        yield OpenedTree(stage, runner, source.tree, ports.cores)
    log.unlink(missing_ok=True)


def made_targets(tree: Path, source: Path) -> Iterator[Target]:
    """Programs and shared libraries in a tree that are not in the source that it is a copy of."""
    count = 0
    for entry in walk(tree, on_error=passed_over):
        name = entry.name
        if not stat.S_ISREG(entry.status.st_mode) or any(part in name for part in _NO_PRODUCTS):
            continue
        if (source / name).exists():
            continue
        dynamic = read_dynamic(tree / name)
        is_library = dynamic is not None and not dynamic.is_program and ".so" in entry.base
        is_program = dynamic is not None and dynamic.is_program and ".so" not in entry.base
        if not is_library and not (is_program and entry.status.st_mode & stat.S_IXUSR):
            continue
        count += 1
        if count > _MOST_FILES:
            return
        yield Target(entry.base, "program" if is_program else "shared library", name)
