"""Making what ships a variant, and building the project with it, to see whether it works."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from ensign.builders.build_context import BuildContext
from ensign.builders.build_place import build_context_of, place_of, sandboxes_of
from ensign.builders.build_results import BuildResult, seen_of, seen_of_files
from ensign.builders.build_stage import SOURCE_DATE_EPOCH, perform_stage
from ensign.builders.commands import Commands, filled_all
from ensign.builders.environments import environments_of
from ensign.builders.plan import BuildPlace, plan_builds
from ensign.builders.profiles import files_named
from ensign.builders.request import BuildPorts, BuildRequest
from ensign.builders.revisions import obtain_sources
from ensign.builders.sandbox_mounts import confinement_of
from ensign.builders.stage_facts import cached_stage, program_of
from ensign.builders.stage_runs import Inputs
from ensign.builders.stages import Stage
from ensign.builders.systems.cargo import plain_build
from ensign.builders.systems.debian import PACKAGED, RULES, plain_rules
from ensign.builders.toolchains_here import find_toolchains
from ensign.host.cache import key_of
from ensign.host.files import copy_tree, is_file, write_atomically
from ensign.host.root_directory import RootDirectory
from ensign.model.builds import BuildEvent, EventKind, OnEvent
from ensign.model.builds import identity as identity_of
from ensign.model.errors import CommandFailed, InputError
from ensign.model.instructions import InstructionSets
from ensign.model.placeholders import shown
from ensign.model.shipment import NOT_VERIFIED, Shipment, ShippedFile
from ensign.model.study_environment import environment_of
from ensign.model.unit_choices import can_be_named
from ensign.model.units import parse_duration_ns, parse_size_bytes
from ensign.model.variants import Variant, trained
from ensign.proof.evidence import Request, moved
from ensign.proof.flags import effects
from ensign.ship import script
from ensign.ship.effects import ComparedBuild, verify
from ensign.ship.script import called_by_name, watched_programs
from ensign.ship.source_change import (
    CARGO_CONFIGURATION,
    PATCH,
    SourceChange,
    cargo_change,
    change,
    changed_texts,
    debian_variables,
    manifests_of,
    with_debian_variables,
)
from ensign.sources.obtain import SourceTree
from ensign.toolchains.find import Toolchain, ToolchainFinder
from ensign.toolchains.hardening import beside_libraries
from ensign.toolchains.places import THIS_MACHINE
from ensign.toolchains.profiling import using
from ensign.toolchains.spelling import without_evidence
from ensign.toolchains.table import Family, Flags

_SCHEMA = 1
_PLAIN_FILE = 0o644
_TOOLS = ("cc", "cxx", "ar", "ranlib", "nm", "ld")
_SOURCE, _SHIPPED, _MADE, _WORK = "source", "shipped", "made", "work"


def ship_variant(
    request: BuildRequest,
    measured: BuildResult,
    ports: BuildPorts,
    on_event: OnEvent,
    changed_by: Flags | None = None,
) -> Shipment:
    """Ship a variant of the request, and verify it against its measured build.

    The change gives the project the flags `changed_by` (the variant's own without them): those of
    another compiler's variant, to see what the same change does with this one.

    EditError where the change does not apply; InputError where the study does not say how, or for
    a trained variant of an environment; CommandFailed where the project does not build with it;
    else errors as `build_variants`.
    """
    seen = measured.seen
    if seen is None or seen.request is None:
        raise InputError(f"{measured.facts.variant} is not built: {measured.facts.why_and_log}")
    variant, flags = seen.request.variant, without_evidence(seen.request.flags)
    environment = environment_of(variant.compiler, request.study.build.environment or "")
    if environment and trained(variant):
        raise InputError(
            f"{variant.name} was built in the environment '{environment}'; the script of a "
            "profiled build is verified on this machine: include the variant with a compiler that "
            "is installed here"
        )
    environments = environments_of(request, ports, confinement_of(request, ports))
    toolchains = find_toolchains(request, ports, environments)
    source = obtain_sources(request, ports, on_event).at(variant.revision)
    sandboxes = sandboxes_of(request, ports, toolchains)
    place = place_of({"": source.sha256}, sandboxes, request, ports, environments)
    context = build_context_of(request, ports, sandboxes, place)
    shipping = _Shipping(
        request,
        variant,
        flags,
        changed_by or flags,
        toolchains,
        source,
        seen.request,
        replace(context, roots=environments.roots),
        on_event,
        ports.cores,
    )
    shipment, shipped = shipping.as_script() if trained(variant) else shipping.as_change()
    programs = shipping.root or THIS_MACHINE
    was = ComparedBuild(seen, measured.facts.identity, measured.others).behind_links(programs.real)
    asked = None if changed_by is None else (*changed_by.compile, *changed_by.link)
    return replace(shipment, verified=verify(was, shipped, asked))


def instructions_of_variant(
    request: BuildRequest, measured: BuildResult, ports: BuildPorts
) -> InstructionSets | None:
    """Instructions that the program may use; None where that is not known."""
    if measured.seen is None or measured.seen.request is None:
        return None
    flags = measured.seen.request.flags
    toolchain = find_toolchains(request, ports)[measured.seen.request.variant.compiler]
    with ports.cache.temporary() as scratch:
        finder = ToolchainFinder(ports.processes, scratch, ports.env.get("PATH"))
        return finder.instructions(toolchain, (*flags.compile, *flags.link))


@dataclass(frozen=True, slots=True)
class _Shipping:
    request: BuildRequest
    variant: Variant
    flags: Flags
    changed_by: Flags
    toolchains: Mapping[str, Toolchain]
    source: SourceTree
    asked: Request
    build_context: BuildContext
    on_event: OnEvent
    cores: int

    @property
    def toolchain(self) -> Toolchain:
        return self.toolchains[self.variant.compiler]

    @property
    def root(self) -> RootDirectory | None:
        """The environment that it is built in, if it is not this machine."""
        return self.build_context.roots.get(self.toolchain.environment)

    @property
    def path(self) -> str:
        """Folders in which the build finds programs."""
        return self.build_context.within(self.toolchain.environment).path

    def as_change(self) -> tuple[Shipment, ComparedBuild]:
        """A patch, and the project's own build with it."""
        changed, commands, typed = self._change()

        def furnish(tree: Path) -> None:
            copy_tree(self.source.tree, tree)
            for name, text in changed.files.items():
                there = is_file(tree / name)
                mode = (tree / name).stat().st_mode & 0o777 if there else _PLAIN_FILE
                (tree / name).parent.mkdir(parents=True, exist_ok=True)
                write_atomically(tree / name, _bytes(text), mode=mode)

        build = self.request.study.build
        stage = self._stage(changed.diff, commands, build.artifact)
        seen = self._built(
            replace(
                stage,
                runtime_files=tuple(build.runtime_files),
                finds_libraries=build.system is not None,
            ),
            furnish,
            self.build_context,
        )
        typed = (f"patch -p1 < {PATCH}", *typed)
        return self._shipment((ShippedFile(PATCH, _bytes(changed.diff)),), typed), seen

    def _change(self) -> tuple[SourceChange, Commands, tuple[str, ...]]:
        """The change of the files, the commands that verify it, and what a user types for that."""
        ship, build = self.request.study.ship, self.request.study.build
        if ship is not None:
            texts = self._texts([edit.file for edit in ship.edits])
            commands = filled_all(ship.commands, self._names, "ship.commands")
            changed = change(ship.edits, texts, self._values(), source_values(self.asked))
            return changed, commands, tuple(map(_typed, commands))
        if build.system == "cargo":
            texts = self._texts([*manifests_of(build.folder), CARGO_CONFIGURATION])
            changed = cargo_change(build.folder, texts, self.toolchain.host, self.changed_by)
            words = ["cargo", "build", "--release", *build.options]
            words += [word for name in build.targets for word in ("--bin", name)]
            rustc = PurePosixPath(self.toolchain.cc).name
            commands = plain_build(build, self.toolchain.cargo, rustc)
            return changed, commands, (f"{self._named_rustc()}{shown(words)}",)
        if build.system != "debian":
            raise InputError("the study has no [ship] table")
        before = self._texts([RULES])
        if RULES not in before:
            raise InputError(f"the source has no {RULES}")
        flags = beside_libraries(self.toolchain.kind, self.changed_by)
        more = debian_variables(flags, self._tools_beside_the_usual())
        after = {RULES: with_debian_variables(before[RULES], more)}
        return changed_texts(before, after), (plain_rules(build),), (PACKAGED,)

    def _named_rustc(self) -> str:
        """Words that a user puts in front where the variant's rustc is not the one of the path."""
        name = self.variant.compiler
        return "" if name == "rustc" else shown([f"RUSTC={self._names['cc']}"]) + " "

    def _tools_beside_the_usual(self) -> dict[str, str]:
        """CC and CXX, where the system's own compiler is another one."""
        place, names = self.root or THIS_MACHINE, self._names
        usual = place.which("gcc", self.path)
        if usual and place.real(usual) == place.real(self.toolchain.cc):
            return {}
        return {name: names[tool] for name, tool in (("CC", "cc"), ("CXX", "cxx")) if names[tool]}

    def as_script(self) -> tuple[Shipment, ComparedBuild]:
        """The steps of a profiled build, carried out in a folder of their own."""
        steps = self._steps()
        text = script.script(steps)
        files = (ShippedFile(script.NAME, text.encode(), executable=True), *self._training_files())
        name = PurePosixPath(steps.last.artifact).name

        def furnish(tree: Path) -> None:
            tree.mkdir()
            copy_tree(self.source.tree, tree / _SOURCE)
            for shipped_file in files:
                target = tree / _SHIPPED / shipped_file.name
                target.parent.mkdir(parents=True, exist_ok=True)
                write_atomically(
                    target, shipped_file.content, mode=0o755 if shipped_file.executable else 0o644
                )

        argv = ("bash", f"{_SHIPPED}/{script.NAME}", _SOURCE, f"{_MADE}/{name}", _WORK)
        files_sha256 = [hashlib.sha256(file.content).hexdigest() for file in files]
        stage = replace(
            self._stage(",".join(files_sha256), (argv,), f"{_MADE}/{name}"),
            env=(("JOBS", str(self.cores)), *self._driver()),
            deadline_ns=sum(each.deadline_ns for each in steps.stages),
            disk_bytes=sum(each.disk_bytes for each in steps.stages),
        )
        sandboxes = self.build_context.sandboxes.for_checks()
        made = self._built(stage, furnish, replace(self.build_context, sandboxes=sandboxes))
        root = sandboxes.build_path
        seen = moved(made.seen, f"{root}/{_WORK}/tree", root)
        seen = replace(seen, log=script.log_of_last_step(seen.log))
        typed = f"bash {script.NAME} SOURCE {name}"
        return self._shipment(files, (typed,)), replace(made, seen=seen)

    def _texts(self, names: Sequence[str]) -> dict[str, str]:
        """The files that are there."""
        paths = {name: self.source.tree / name for name in names}
        return {
            name: path.read_bytes().decode("utf-8", "surrogateescape")
            for name, path in paths.items()
            if is_file(path)
        }

    def _values(self) -> dict[str, str]:
        flags, variant = self.changed_by, self.variant
        dependencies = flags if variant.dependencies == "flags" else Flags((), ())
        lto = (flag for flag in flags.link if flag.startswith("-flto"))
        by_name = {
            "cflags": flags.compile,
            "ldflags": flags.link,
            "link_only": tuple(flag for flag in flags.link if flag not in flags.compile),
        }
        return {
            **self._names,
            "opt": variant.optimization,
            "lto": next(lto, ""),
            **{name: " ".join(words) for name, words in by_name.items()},
            **{f"{name}_list": ", ".join(map(_quoted, words)) for name, words in by_name.items()},
            "allocator": self.request.study.build.allocators.get(variant.allocator, ""),
            "dependency_cflags": " ".join(dependencies.compile),
            "dependency_ldflags": " ".join(dependencies.link),
        }

    @property
    def _names(self) -> dict[str, str]:
        toolchain = called_by_name(self.toolchain, self.path, self.root or THIS_MACHINE)
        return {name: str(getattr(toolchain, name)) for name in _TOOLS}

    def _steps(self) -> script.Steps:
        """The plan of the measured build, with programs by name and one path for all trees."""
        request, path = self.request, self.build_context.path
        toolchains = {
            name: called_by_name(toolchain, path, THIS_MACHINE)
            for name, toolchain in self.toolchains.items()
        }
        place = BuildPlace(source_sha256=self.source.sha256, build_path=script.TREE, path=path)
        plan = plan_builds(request.study, request.variants, request.baseline, toolchains, place)
        last = plan.stage(plan.stage_of[self.variant.name])
        return script.Steps(request.study, plan, last, self.variant.choices, SOURCE_DATE_EPOCH)

    def _driver(self) -> tuple[tuple[str, str], ...]:
        """The load generator of this ensign, where the script asks for one."""
        meter = self.build_context.meter
        return () if meter is None else (("DRIVER", str(meter)),)

    def _training_files(self) -> Iterator[ShippedFile]:
        """Files of the study's folder that the training reads, and what it sends."""
        for name, content in script.drive_files(self.request.study).items():
            yield ShippedFile(f"{script.FILES}/{name}", content)
        folder = self.request.path.absolute().parent
        for name in files_named(self.request.study):
            path = folder / name
            if name and is_file(path) and path.resolve().is_relative_to(folder.resolve()):
                executable = os.access(path, os.X_OK)
                inside = path.resolve().relative_to(folder.resolve())
                yield ShippedFile(f"{script.FILES}/{inside}", path.read_bytes(), executable)

    def _shipment(self, files: tuple[ShippedFile, ...], commands: tuple[str, ...]) -> Shipment:
        of_profile = using(self.toolchain.kind, self.build_context.sandboxes.build_path)
        return Shipment(
            variant=self.variant.name,
            compiler=self.toolchain.version_line,
            flags=tuple(flag for flag in self.flags.compile if flag not in of_profile),
            link_flags=tuple(flag for flag in self.flags.link if flag not in of_profile),
            files=files,
            commands=commands,
            verified=NOT_VERIFIED,
        )

    def _stage(self, shipped: str, commands: Commands, artifact: str) -> Stage:
        """A stage of the study's limits, without its environment; calls are watched alone."""
        build = self.request.study.build
        root, place = self.root, self.root or THIS_MACHINE
        watched = watched_programs(self.toolchain, self.path, root)
        programs = [(recorded.name, place.real(recorded.program)) for recorded in watched]
        sandbox = self.build_context.sandbox_key
        inputs = {
            "schema": _SCHEMA,
            "source": self.source.sha256,
            "place": self.build_context.sandboxes.build_path,
            "programs": programs,
            "toolchains": [toolchain.identity for toolchain in self.toolchains.values()],
            **({"sandbox": sandbox} if sandbox else {}),
            **({"root": root.sha256} if root is not None else {}),
            "shipped": [shipped, commands, artifact, build.runtime_files],
        }
        return Stage(
            kind="program",
            key=key_of(inputs),
            parent="",
            label=f"{self.variant.name} as shipped",
            variants=(self.variant.name,),
            commands=commands,
            env=(),
            deadline_ns=parse_duration_ns(build.deadline),
            disk_bytes=parse_size_bytes(build.disk),
            artifact=artifact,
            recorded=watched,
            environment=self.toolchain.environment,
        )

    def _built(
        self, stage: Stage, furnish: Callable[[Path], None], build_context: BuildContext
    ) -> ComparedBuild:
        """Build it, or take it from the cache. CommandFailed with the last lines of its log."""
        entry = cached_stage(build_context.cache, stage)
        if entry is None:
            started_ns = build_context.clock.monotonic_ns()
            self.on_event(BuildEvent("started", stage.label, 0.0, 0.0))
            with build_context.cache.temporary() as scratch:
                furnish(scratch / "tree")
                made = perform_stage(stage, Inputs(scratch / "tree"), self.cores, build_context)
            elapsed_s = (build_context.clock.monotonic_ns() - started_ns) / 1e9
            kind: EventKind = "failed" if made.entry is None else "finished"
            self.on_event(BuildEvent(kind, stage.label, elapsed_s, 0.0, made.why))
            if made.entry is None:
                raise CommandFailed(f"{stage.label} could not be built: {made.told}")
            entry = made.entry
        seen = seen_of(self.variant, self.changed_by, entry)
        if seen.request is not None:
            own = replace(seen.request, units=self.asked.units, unit_flags=self.asked.unit_flags)
            seen = replace(seen, request=own)
        if self.toolchain.kind.family is Family.RUST and seen.request is not None:
            named = replace(seen.request, compiler=self.toolchain.kind.title)
            # Those of the project's configuration are in effect here.
            seen = replace(seen, request=named, proof=replace(seen.proof, own_rustflags=()))
        program = program_of(entry)
        identity = identity_of(program.taken.files, program.artifact.loadable_sha256)
        others = tuple(seen_of_files(seen, entry))
        place = self.root or THIS_MACHINE
        return ComparedBuild(seen, identity, others).behind_links(place.real)


def source_values(asked: Request) -> list[dict[str, str]]:
    """Values of each source with flags of its own, for edits. Pure.

    InputError where it is not named by its path, or lacks a flag that the others have: a change can
    only add some.
    """
    units, flags = asked.units, asked.unit_flags
    if units is None or flags is None:
        return []
    who = f"{asked.variant.name} cannot be shipped"
    if units.inverted or units.functions or not all(map(can_be_named, units.globs)):
        raise InputError(
            f"{who}: its 'units' must name sources by their paths, not by a pattern or a function"
        )
    if units.by_axis.keys() & {"compiler", "revision"}:
        raise InputError(f"{who}: sources of another compiler or revision need a change by hand")
    common, own = (without_evidence(unit_flags).compile for unit_flags in (asked.flags, flags))
    more = [word for word in own if word not in common]
    left = effects((*common, *more)).items() - effects(own).items()
    if left:
        named = ", ".join(sorted(subject for subject, _ in left))
        raise InputError(f"{who}: its sources lack flags ({named}) that a change cannot take back")
    return [
        {
            "source": source,
            "stem": str(PurePosixPath(source).with_suffix("")),
            "name": PurePosixPath(source).stem,
            "source_flags": " ".join(more),
        }
        for source in units.globs
    ]


def _typed(argv: tuple[str, ...]) -> str:
    return " ".join(
        '-j"$(nproc)"' if word == "-j{jobs}" else shown([word]).replace("{jobs}", '"$(nproc)"')
        for word in argv
    )


def _quoted(flag: str) -> str:
    """A string of Meson."""
    escaped = flag.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
