"""`ensign ship`: from a measured study to the change that gives the project its best build."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ensign.builders.build import build_variants
from ensign.builders.environments import environments_of
from ensign.builders.request import BuildPorts, BuildRequest
from ensign.builders.shown import confinement_of
from ensign.host.cache import Cache
from ensign.lab.ports import Ports
from ensign.lab.ship.hosts import Host, require_hosts
from ensign.lab.study.prepare import build_ports, compilers_by_line
from ensign.lab.study_file import StudyFile
from ensign.model.build_events import OnEvent
from ensign.model.builds import BuildFacts
from ensign.model.errors import InputError
from ensign.model.shipment import Shipment, VerifiedWith
from ensign.model.study import Study
from ensign.model.study_environment import environment_of
from ensign.model.study_problems import suggestion
from ensign.model.variants import Variant, trained
from ensign.ship.patch import EditError
from ensign.ship.rebuild import instructions_of_variant, ship_variant
from ensign.toolchains.spelling import without_evidence
from ensign.toolchains.table import Flags

# Whose own files say where the flags belong.
_BY_SYSTEM = ("cargo", "debian")


def _require_way(file: StudyFile, variant: str) -> None:
    """InputError where the study says nothing about how that variant becomes the project's."""
    plain = not any(trained(each) for each in file.variants if each.name == variant)
    known = file.study.build.system in _BY_SYSTEM
    if plain and file.study.ship is None and not known:
        raise InputError(
            f"{file.path} has no [ship] table, which says where the project's own build gets its "
            "flags; docs/how-to/ship.md shows one"
        )


@dataclass(frozen=True, slots=True)
class Demands:
    """What the change must do besides: run on these hosts, and work with these other compilers.

    With `update_lock` their environments may be others than the lock file pins; it is renewed.
    """

    hosts: Sequence[Host] = ()
    compilers: Sequence[str] = ()
    update_lock: bool = False


def ship(
    file: StudyFile,
    measured: BuildFacts,
    demands: Demands,
    cache: Cache,
    ports: Ports,
    on_event: OnEvent,
) -> Shipment:
    """Make and verify the change for a variant, which must still be built as it was measured.

    StudyError with the line of an edit that does not apply; InputError where the variant would not
    be built as it was measured, does not run on one of the hosts, or is not known to another
    compiler; CommandFailed where the project does not build with the change.
    """
    variant = measured.variant
    _require_way(file, variant)
    baseline = file.variants[0]
    known = [each for each in file.variants if each.name == variant]
    if not known:
        raise _stale(file, variant)
    request = BuildRequest(file.study, file.path, (baseline, *known), baseline.name)
    building = build_ports(file, cache, ports)
    with compilers_by_line(file):
        built = build_variants(request, building, on_event).result(variant)
    if built.facts.identity != measured.identity:
        raise _stale(file, variant)
    instructions = instructions_of_variant(request, built, building)
    doubts = require_hosts(variant, instructions, demands.hosts)
    try:
        shipment = ship_variant(request, built, building, on_event)
        assert built.seen is not None  # noqa: S101  # it was shipped
        assert built.seen.request is not None  # noqa: S101  # it was built as one asked for
        flags = without_evidence(built.seen.request.flags)
        change = _Change(request, flags, building, on_event)
        tried = [_with_compiler(file.study, known[0], name) for name in demands.compilers]
        if demands.update_lock:
            change.pin_environments(tried)
        others = tuple(map(change.with_compiler, tried))
    except EditError as error:
        raise file.error(str(error), "ship", "edits", error.index) from None
    hosts = tuple(each.name for each in demands.hosts if each.name not in doubts)
    return replace(
        shipment,
        instructions=instructions,
        hosts=hosts,
        doubts=tuple(doubts.values()),
        others=others,
    )


@dataclass(frozen=True, slots=True)
class _Change:
    """The change of a variant of the request, by the flags that it gives the project."""

    request: BuildRequest
    flags: Flags
    ports: BuildPorts
    on_event: OnEvent

    def pin_environments(self, variants: Sequence[Variant]) -> None:
        """Make those of these variants anew, once for all of them, and renew the lock file."""
        both = (self.request.variants[0], *variants)
        request = replace(self.request, variants=both, update_lock=True)
        confinement = confinement_of(request, self.ports)
        environments_of(request, self.ports, confinement, self.on_event)

    def with_compiler(self, variant: Variant) -> VerifiedWith:
        """The same change, built by another compiler: beside what the study builds with that.

        InputError where it cannot build that variant, or is not there.
        """
        request = replace(self.request, variants=(self.request.variants[0], variant))
        built = build_variants(request, self.ports, self.on_event).result(variant.name)
        if built.seen is None:
            raise InputError(
                f"--with {variant.compiler}: {variant.name} is not built: {built.facts.why_and_log}"
            )
        shipped = ship_variant(request, built, self.ports, self.on_event, self.flags)
        return VerifiedWith(variant.compiler, shipped.compiler, shipped.verified)


def _with_compiler(study: Study, variant: Variant, compiler: str) -> Variant:
    """The same variant of another compiler. InputError where it names no environment there is."""
    environment = environment_of(compiler, study.build.environment or "")
    if environment and environment not in study.environments:
        near = suggestion(environment, [*study.environments])
        raise InputError(f"--with {compiler}: the study has no environment '{environment}'{near}")
    return replace(variant, name=f"{variant.name}-with-{compiler}", compiler=compiler)


def _stale(file: StudyFile, variant: str) -> InputError:
    return InputError(
        f"{variant} would not be built as it was measured: the study, its source, a compiler or a "
        f"profile is another one now; 'ensign run {file.path}' measures it again"
    )
