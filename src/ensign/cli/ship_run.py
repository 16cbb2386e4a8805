"""Body of `ensign ship`; imported late, numpy comes with it."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from ensign.cli.output import complain, say
from ensign.cli.progress import BuildProgress, StatusLine
from ensign.experiment.ports import Ports
from ensign.experiment.study.opened import open_cache, open_study
from ensign.experiment.study.stored import folder_of, stored_result
from ensign.model.shipment import ShippedFile
from ensign.report.as_pull_request import pull_request
from ensign.tools.ship import PAGE, Demands, check_folder, chosen, read_host, write_folder
from ensign.tools.ship import ship as ship_study

_NO_EFFECT = 1
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class ShipWish:
    """The variant, hosts, doubts to pass over, and other compilers."""

    variant: str | None
    hosts: tuple[Path, ...] = ()
    despite: tuple[str, ...] = ()
    compilers: tuple[str, ...] = ()
    update_lock: bool = False


def ship(path: Path, wish: ShipWish, output: Path | None, *, force: bool) -> int:
    """See `ensign.cli.ship.ship`. Returns the exit status; errors pass."""
    ports = Ports()
    file = open_study(path)
    result = stored_result(file)
    build = chosen(result, wish.variant, wish.despite)
    hosts = [read_host(host) for host in wish.hosts]
    demands = Demands(hosts, wish.compilers, wish.update_lock)
    folder = output
    if folder is None:
        folder = folder_of(file).root / "ship" / build.variant
    else:
        check_folder(folder, force=force)
    with StatusLine(sys.stderr) as line, open_cache(ports) as cache:
        shipment = ship_study(
            file, build, demands, cache, ports, BuildProgress(line, sys.stderr).show
        )
    problems = shipment.problems
    if problems:
        more = len(problems) - _SHOWN
        text = "; ".join(problems[:_SHOWN]) + (f"; and {more} more" if more > 0 else "")
        complain(f"the shipped change does not have the effect that was measured: {text}")
        return _NO_EFFECT
    page = pull_request(result, shipment, str(path))
    files = (*shipment.files, ShippedFile(PAGE, page.encode()))
    write_folder(folder, files)
    notes = "".join(f"  {note}\n" for note in shipment.verified.notes)
    say(f"{build.variant}, built with the change and without ensign:\n{notes}")
    for doubt in shipment.doubts:
        say(f"Note: {doubt}.\n")
    for other in shipment.others:
        say(f"The same change does the same with {other.name} ({other.compiler}).\n")
    say("".join(f"{folder / shipped_file.name}\n" for shipped_file in files))
    return 0
