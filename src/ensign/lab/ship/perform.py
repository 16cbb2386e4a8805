"""`ensign ship`: from a measured study to the change that gives the project its best build."""

from __future__ import annotations

from dataclasses import dataclass

from ensign.builders.build import build_variants
from ensign.builders.cache import Cache
from ensign.builders.events import OnEvent
from ensign.builders.request import BuildRequest
from ensign.builders.shipping.patch import EditError
from ensign.builders.shipping.perform import ship_variant
from ensign.lab.ports import Ports
from ensign.lab.study.perform import stored_result
from ensign.lab.study.prepare import build_ports, compilers_by_line
from ensign.lab.study_file import StudyFile
from ensign.model.errors import InputError
from ensign.model.results import StudyResult
from ensign.model.shipment import Shipment
from ensign.model.variants import trained


@dataclass(frozen=True, slots=True)
class Shipped:
    """What is shipped, and the result that it rests on."""

    result: StudyResult
    shipment: Shipment


def require_way(file: StudyFile, variant: str) -> None:
    """InputError where the study says nothing about how that variant becomes the project's."""
    plain = not any(trained(each) for each in file.variants if each.name == variant)
    if plain and file.study.ship is None:
        raise InputError(
            f"{file.path} has no [ship] table, which says where the project's own build gets its "
            "flags; docs/ship.md shows one"
        )


def ship(file: StudyFile, variant: str, cache: Cache, ports: Ports, on_event: OnEvent) -> Shipped:
    """Make and verify the change for a measured variant.

    StudyError with the line of an edit that does not apply; InputError where the variant would not
    be built as it was measured; CommandFailed where the project does not build with the change.
    """
    require_way(file, variant)
    result = stored_result(file)
    baseline = file.variants[0]
    known = [each for each in file.variants if each.name == variant]
    if not known:
        raise _stale(file, variant)
    request = BuildRequest(file.study, file.path, (baseline, *known), baseline.name)
    building = build_ports(file, cache, ports)
    with compilers_by_line(file):
        built = build_variants(request, building, on_event).result(variant)
    measured = next(each for each in result.builds if each.variant == variant)
    if built.facts.loadable_sha256 != measured.loadable_sha256:
        raise _stale(file, variant)
    try:
        return Shipped(result, ship_variant(request, built, building, on_event))
    except EditError as error:
        raise file.error(str(error), "ship", "edits", error.index) from None


def _stale(file: StudyFile, variant: str) -> InputError:
    return InputError(
        f"{variant} would not be built as it was measured: the study, its source, a compiler or a "
        f"profile is another one now; 'ensign run {file.path}' measures it again"
    )
