"""`ensign ship`: from a measured study to the change that gives the project its best build."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ensign.builders.build import build_variants
from ensign.builders.request import BuildRequest
from ensign.host.cache import Cache
from ensign.lab.ports import Ports
from ensign.lab.ship.hosts import Host, require_hosts
from ensign.lab.study.prepare import build_ports, compilers_by_line
from ensign.lab.study_file import StudyFile
from ensign.model.build_events import OnEvent
from ensign.model.builds import BuildFacts
from ensign.model.errors import InputError
from ensign.model.shipment import Shipment
from ensign.model.variants import trained
from ensign.ship.patch import EditError
from ensign.ship.rebuild import instructions_of_variant, ship_variant

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


def ship(
    file: StudyFile,
    measured: BuildFacts,
    hosts: Sequence[Host],
    cache: Cache,
    ports: Ports,
    on_event: OnEvent,
) -> Shipment:
    """Make and verify the change for a variant, which must still be built as it was measured.

    StudyError with the line of an edit that does not apply; InputError where the variant would not
    be built as it was measured, or does not run on one of the hosts; CommandFailed where the
    project does not build with the change.
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
    require_hosts(variant, instructions, hosts)
    try:
        shipment = ship_variant(request, built, building, on_event)
        return replace(shipment, instructions=instructions, hosts=tuple(map(str, hosts)))
    except EditError as error:
        raise file.error(str(error), "ship", "edits", error.index) from None


def _stale(file: StudyFile, variant: str) -> InputError:
    return InputError(
        f"{variant} would not be built as it was measured: the study, its source, a compiler or a "
        f"profile is another one now; 'ensign run {file.path}' measures it again"
    )
