"""Bodies of `plan`, `run`, `report` and `clean`; imported late, numpy comes with it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from ensign.cli.experiment import machine_lock, show, tell
from ensign.cli.options import FailOn, Outputs
from ensign.cli.output import complain, say, write
from ensign.cli.progress import BuildProgress, RoundsProgress, StatusLine, screen_of
from ensign.experiment.cluster.tasks import StudyHosts, read_hosts
from ensign.experiment.confinement import confined_ports
from ensign.experiment.ports import Ports
from ensign.experiment.record import Verification
from ensign.experiment.steps import ExperimentOutcome, run_experiment
from ensign.experiment.study.forecast import expectation
from ensign.experiment.study.networks import without_networks
from ensign.experiment.study.phase import ProgressCallbacks, StudyContext
from ensign.experiment.study.prepare import open_cache, open_study
from ensign.experiment.study.run import StudySteps, folder_of
from ensign.experiment.study_file import LimitOptions, StudyFile, read_cluster
from ensign.host.files import check_writable, write_atomically
from ensign.model.errors import InputError
from ensign.model.fleet import Fleet
from ensign.model.results import Result
from ensign.model.units import format_size, parse_duration_ns
from ensign.report import as_difference, as_fleet, as_html, as_plan, fleet_page
from ensign.tools import bundles
from ensign.tools.bundles import StudyEvidence, keep_figures
from ensign.tools.diff_studies import differences
from ensign.tools.fleets import fleet_of, fleet_of_study, parse_host, parse_shares

_DIFFERS = 1
_THIS_MACHINE = "local"


def plan(path: Path, workloads: Sequence[str], on: Path | None = None) -> None:
    """See `ensign.cli.study.plan`."""
    ports = Ports()
    cluster = None if on is None else read_cluster(on)
    file = open_study(path, ports).with_workloads(workloads)
    with open_cache(ports) as cache:
        expected = expectation(file, cache, ports, only_look=True)
    width = screen_of(sys.stdout).width
    say(as_plan.plan(expected, width))
    if cluster is not None:
        budget_ns = parse_duration_ns(file.study.race.budget)
        say(as_plan.on_cluster(cluster, expected, budget_ns, width))


def run(  # noqa: PLR0913  # what the command line says
    path: Path,
    workloads: Sequence[str],
    limits: LimitOptions,
    outputs: Outputs,
    fail_on: FailOn,
    *,
    details: bool,
    share_machine: bool,
    update_lock: bool,
    confined: bool = True,
    install_dependencies: bool = False,
) -> int:
    """See `ensign.cli.study.run`. Returns the exit status; errors pass."""
    outputs.check()
    ports = Ports(race_lock=machine_lock(share=share_machine))
    file = open_study(path, ports).with_workloads(workloads).with_limits(limits)
    file = file if confined else file.unconfined()
    outcome = raced_study(
        file, ports, update_lock=update_lock, install_dependencies=install_dependencies
    )
    return tell_study(outcome, file, outputs, fail_on, details=details)


def raced_study(
    file: StudyFile,
    ports: Ports,
    *,
    update_lock: bool = False,
    install_dependencies: bool = False,
    told: Callable[[Result], Result] | None = None,
) -> ExperimentOutcome:
    """Builds and races a study; its outcome. Errors pass."""
    folder = folder_of(file)
    file, refused = without_networks(file, ports)
    with StatusLine(sys.stderr) as line, open_cache(ports) as cache:
        write(sys.stderr, as_plan.before_run(expectation(file, cache, ports)) + "\n")
        context = StudyContext(cache, confined_ports(file, ports), folder, study_progress(line))
        steps = StudySteps(file, context, update_lock, install_dependencies, refused, told=told)
        outcome = run_experiment(steps)
        line.clear()
        return outcome


def tell_study(
    outcome: ExperimentOutcome,
    file: StudyFile,
    outputs: Outputs,
    fail_on: FailOn,
    *,
    details: bool,
) -> int:
    """Writes and prints a study's result; the exit status."""
    folder = folder_of(file)

    def keep(result: Result) -> str:
        keep_figures(folder, result)
        page = folder.root / "report.html"
        if not _is_current(page, result):
            write_html(result, page)
        return f"Report: {page}\n"

    return tell(outcome, outputs, fail_on, details=details, keep=keep)


def study_progress(line: StatusLine) -> ProgressCallbacks:
    """A study's progress in the terminal."""
    rounds = RoundsProgress(line, sys.stderr)
    return ProgressCallbacks(
        build=BuildProgress(line, sys.stderr).show,
        pilot=lambda workload: line.show(f"pilot: {workload}"),
        plan=rounds.expect,
        trial=rounds.show,
        finding=rounds.tell,
    )


def report(  # what the command line says
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
    found = differences(a, b)
    outputs.write_texts(
        {
            "markdown": partial(as_difference.markdown, found),
            "json": partial(as_difference.as_json, found),
        }
    )
    if not outputs.are_asked_for:
        say(as_difference.text(found, screen_of(sys.stdout).width))


def merge(results: Sequence[str], shares: Sequence[str], outputs: Outputs) -> None:
    """See `ensign.cli.study.merge`."""
    check_fleet(outputs)
    tell_fleet(fleet_of([parse_host(each) for each in results], parse_shares(shares)), outputs)


_FLEET_FORMATS = {
    "markdown": as_fleet.markdown, "json": as_fleet.as_json, "html": fleet_page.render,
}  # fmt: skip


def check_fleet(outputs: Outputs) -> None:
    """InputError for a format that a host has, and no fleet, or that cannot be written."""
    lacking = [name for name, to in outputs.files.items() if to and name not in _FLEET_FORMATS]
    if lacking:
        raise InputError(f"a fleet has no --{lacking[0]}; 'ensign report --host NAME' has")
    outputs.check()


def tell_fleet(found: Fleet, outputs: Outputs, *, every_workload: bool = False) -> None:
    """Writes or prints what is true of a fleet, after `check_fleet`."""
    outputs.write_texts({name: partial(of, found) for name, of in _FLEET_FORMATS.items()})
    if not outputs.are_asked_for:
        say(as_fleet.text(found, screen_of(sys.stdout).width, every_workload=every_workload))


def bundle(path: Path, output: Path | None, key: Path | None) -> None:
    """See `ensign.cli.study.bundle`."""
    if output is not None:
        check_writable(output)
    made = bundles.bundle(path, output, key)
    say(f"Bundle: {made.path} ({format_size(made.size_bytes)}, SHA-256 {made.sha256})\n")


def unbundle(path: Path, folder: Path) -> None:
    """See `ensign.cli.study.unbundle`."""
    given, missing = bundles.unbundle(path, folder)
    for each in given:
        say(f"{each}\n")
    say(f"To run it again: ensign run {given[0]}\n")
    for text in missing:
        complain(text)


def clean(older_than: str | None) -> None:
    """See `ensign.cli.study.clean`."""
    age_s = None if older_than is None else parse_duration_ns(older_than) / 1e9
    with open_cache(Ports()) as cache:
        freed_bytes = cache.clean(age_s)
    say(f"Freed {format_size(freed_bytes)}.\n")


def verify(path: Path, signers: Path | None) -> int:
    """See `ensign.cli.study.report`. Returns the exit status."""
    found = _of_bundle(path, signers, must=signers is not None)
    if not found.differs:
        try:
            with bundles.opened(path) as opened:
                found += opened.verified()
        except bundles.BundleChanged as changed:
            found += Verification((), (str(changed),))
    return _tell_verified(path, found)


def verify_bundle(path: Path, signers: Path | None) -> int:
    """See `ensign.cli.study.bundle`. Returns the exit status."""
    if not bundles.is_bundle(path):
        raise InputError(f"{path} is not a bundle; 'ensign report {path} --verify' checks a study")
    found = _of_bundle(path, signers, must=True)
    try:
        with bundles.opened(path):
            whole = Verification(("no file in it is missing, changed or added",), ())
    except bundles.BundleChanged as changed:
        whole = Verification((), (str(changed),))
    return _tell_verified(path, found + whole)


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


def _tell_verified(path: Path, found: Verification) -> int:
    for text in found.checked:
        say(f"{text}\n")
    for text in found.differs:
        say(f"DIFFERS: {text}\n")
    if found.differs:
        return _DIFFERS
    say(f"Verified: {path}\n")
    return 0


def write_html(result: Result, path: Path) -> Path:
    """Writes the page; its path."""
    write_atomically(path, as_html.render(result).encode())
    return path


def _is_current(page: Path, result: Result) -> bool:
    # Drawing takes longer than all else that a finished study needs.
    try:
        return as_html.shows(page.read_text(encoding="utf-8", errors="replace"), result)
    except OSError:
        return False
