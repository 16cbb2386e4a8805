"""Bodies of the commands that read results; imported late, numpy comes with it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from ensign.cli.experiment import show
from ensign.cli.options import FailOn, Outputs
from ensign.cli.output import complain, say
from ensign.cli.progress import screen_of
from ensign.experiment.cluster.tasks import StudyHosts, read_hosts
from ensign.experiment.record import Verification
from ensign.experiment.study.stored import folder_of
from ensign.host.files import check_writable
from ensign.model.errors import InputError
from ensign.model.fleet import Fleet
from ensign.model.units import format_size
from ensign.report import as_difference, as_fleet
from ensign.tools import bundles
from ensign.tools.bundles import StudyEvidence
from ensign.tools.diff_studies import differences
from ensign.tools.fleets import fleet_of, fleet_of_study, parse_host, parse_shares

_DIFFERS = 1
_THIS_MACHINE = "local"


def report(
    path: Path,
    outputs: Outputs,
    fail_on: FailOn,
    *,
    host: str | None,
    details: bool,
    every_workload: bool,
) -> int:
    """See `ensign.cli.study.report`. Where files are asked for, only they are written."""
    outputs.check()
    with bundles.opened(path) as found:
        if isinstance(found, StudyEvidence):
            hosts = read_hosts(folder_of(found.file))
            if hosts is not None and host is None:
                check_fleet(outputs)
                if fail_on.words:
                    raise InputError("--fail-on is for one host's results: name it by --host")
                fleet = fleet_of_study(found.file)
                tell_fleet(fleet, outputs, every_workload=every_workload or details)
                return 0
            found = found.of_host(_slot(path, hosts, host))  # noqa: PLW2901  # the same, of one host
        result = found.result()
    if outputs.are_asked_for:
        outputs.write(result)
    else:
        show(result, outputs, details=details, every_workload=every_workload)
    return fail_on.status(result)


def _slot(path: Path, hosts: StudyHosts | None, asked: str | None) -> str:
    """Name of one of the study's hosts; empty: this machine. InputError where there is none."""
    if not asked or asked == _THIS_MACHINE:
        return ""
    names = [] if hosts is None else [slot.name for slot in hosts.hosts]
    if asked not in names:
        there = ", ".join((_THIS_MACHINE, *names))
        raise InputError(f"{path} has no host '{asked}'; there are {there}")
    return asked


def diff_studies(a: Path, b: Path, outputs: Outputs) -> None:
    """See `ensign.cli.study.diff_studies`."""
    outputs.check()
    difference = differences(a, b)
    outputs.write_texts(
        {
            "markdown": partial(as_difference.markdown, difference),
            "json": partial(as_difference.as_json, difference),
        }
    )
    if not outputs.are_asked_for:
        say(as_difference.text(difference, screen_of(sys.stdout).width))


def merge(results: Sequence[str], shares: Sequence[str], outputs: Outputs) -> None:
    """See `ensign.cli.study.merge`."""
    check_fleet(outputs)
    tell_fleet(fleet_of([parse_host(result) for result in results], parse_shares(shares)), outputs)


def _fleet_page(fleet: Fleet) -> str:
    from ensign.report import fleet_page  # noqa: PLC0415  # charts load with it

    return fleet_page.render(fleet)


_FLEET_FORMATS = {"markdown": as_fleet.markdown, "json": as_fleet.as_json, "html": _fleet_page}


def check_fleet(outputs: Outputs) -> None:
    """InputError for a format that a host has, and no fleet, or that cannot be written."""
    lacking = [name for name, to in outputs.files.items() if to and name not in _FLEET_FORMATS]
    if lacking:
        raise InputError(f"a fleet has no --{lacking[0]}; 'ensign report --host NAME' has")
    outputs.check()


def tell_fleet(fleet: Fleet, outputs: Outputs, *, every_workload: bool = False) -> None:
    """Writes or prints what is true of a fleet, after `check_fleet`."""
    outputs.write_texts({name: partial(of, fleet) for name, of in _FLEET_FORMATS.items()})
    if not outputs.are_asked_for:
        say(as_fleet.text(fleet, screen_of(sys.stdout).width, every_workload=every_workload))


def bundle(path: Path, output: Path | None, key: Path | None) -> None:
    """See `ensign.cli.study.bundle`."""
    if output is not None:
        check_writable(output)
    made = bundles.bundle(path, output, key)
    say(f"Bundle: {made.path} ({format_size(made.size_bytes)}, SHA-256 {made.sha256})\n")


def unbundle(path: Path, folder: Path) -> None:
    """See `ensign.cli.study.unbundle`."""
    given, missing = bundles.unbundle(path, folder)
    for name in given:
        say(f"{name}\n")
    say(f"To run it again: ensign run {given[0]}\n")
    for text in missing:
        complain(text)


def verify(path: Path, signers: Path | None) -> int:
    """See `ensign.cli.study.report`. Returns the exit status."""
    verification = _of_bundle(path, signers, must=signers is not None)
    if not verification.differs:
        try:
            with bundles.opened(path) as opened:
                verification += opened.verified()
        except bundles.BundleChanged as changed:
            verification += Verification((), (str(changed),))
    return _tell_verified(path, verification)


def verify_bundle(path: Path, signers: Path | None) -> int:
    """See `ensign.cli.study.bundle`. Returns the exit status."""
    if not bundles.is_bundle(path):
        raise InputError(f"{path} is not a bundle; 'ensign report {path} --verify' checks a study")
    verification = _of_bundle(path, signers, must=True)
    try:
        with bundles.opened(path):
            whole = Verification(("no file in it is missing, changed or added",), ())
    except bundles.BundleChanged as changed:
        whole = Verification((), (str(changed),))
    return _tell_verified(path, verification + whole)


def _of_bundle(path: Path, signers: Path | None, *, must: bool) -> Verification:
    """Verification of a bundle; that nobody signed is wrong where it `must` be signed."""
    if not bundles.is_bundle(path):
        if signers is not None:
            raise InputError(f"{path} is not a bundle: --signers is about those")
        return Verification((), ())
    try:
        signer = bundles.signer_of_bundle(path, signers)
    except bundles.BadSignatureError as error:
        why = f"{path} was changed after it was signed, or its signature was ({error})"
        return Verification((), (why,))
    if signer is None:
        unsigned = f"{path} is not signed: nobody vouches for it"
        return Verification((), (unsigned,)) if must else Verification((unsigned,), ())
    if signer.trusted is False:
        unknown = f"{path} is signed with the key {signer.key}, which none of {signers} has"
        return Verification((), (unknown,))
    if signer.trusted:
        return Verification((f"signed by {signer.name}, with the key {signer.key}",), ())
    whose = "whose that is, --signers FILE says (an allowed_signers file of ssh-keygen)"
    return Verification((f"signed with the key {signer.key}; {whose}",), ())


def _tell_verified(path: Path, verification: Verification) -> int:
    for text in verification.checked:
        say(f"{text}\n")
    for text in verification.differs:
        say(f"DIFFERS: {text}\n")
    if verification.differs:
        return _DIFFERS
    say(f"Verified: {path}\n")
    return 0
