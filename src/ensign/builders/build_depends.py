"""Build dependencies of a Debian source package, and whether they are installed.

Only what is missing is looked at, by Debian's own program, which runs nothing of the package.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping
from pathlib import Path

from ensign.builders.request import BuildPorts, BuildRequest
from ensign.builders.stage_facts import cached_stage
from ensign.builders.stages import Plan, Stage, to_do
from ensign.builders.systems.debian import RULES
from ensign.host.cache import Cache
from ensign.host.processes import Processes, ProcessRequest
from ensign.host.root_directory import RootDirectory
from ensign.model.errors import CommandFailed, InputError
from ensign.model.study import Study

_CONTROL = "debian/control"
_DEADLINE_NS = 60 * 10**9
_INSTALLING_NS = 3600 * 10**9
_UNMET = re.compile(r"unmet build (dependencies|conflicts): (.*)", re.IGNORECASE)
_NAME = r"[a-z0-9][a-z0-9+.-]*(?::[a-z0-9-]+)?"
_ONE = rf"{_NAME}(?: \((?:<<|<=|=|>=|>>) [A-Za-z0-9.+:~-]+\))?"
_DEPENDENCY = re.compile(rf"{_ONE}(?: \| {_ONE})*")
_DH = re.compile(r"^[ \t]*@?dh[ \t]", re.MULTILINE)
PROFILES = "nocheck nodoc"


def missing_dependencies(
    tree: Path,
    processes: Processes,
    env: Mapping[str, str],
    profiles: str = PROFILES,
    root: Path | None = None,
) -> list[str]:
    """The build dependencies of the package in `tree` that are not installed, as Debian says them.

    `root` is the root directory of an environment, whose packages count then. InputError where it
    cannot be told.
    """
    there = () if root is None else (f"--admindir={root}/var/lib/dpkg",)
    if not (tree / _CONTROL).is_file():
        raise InputError(f"system 'debian' needs {_CONTROL} in the source, and there is none")
    outcome = processes.run(
        ProcessRequest(
            (
                "dpkg-checkbuilddeps",
                *there,
                "-B",
                "-P",
                profiles.replace(" ", ","),
                str(tree / _CONTROL),
            ),
            {"PATH": env.get("PATH", os.defpath), "LC_ALL": "C"},
            deadline_ns=_DEADLINE_NS,
        )
    )
    if outcome.reason == "not-found":
        raise InputError("system 'debian' needs dpkg-dev; run 'apt-get install dpkg-dev'")
    if outcome.ok:
        return []
    unmet = unmet_in(outcome.tail)
    if not unmet:
        lines = outcome.tail.strip().splitlines() or [outcome.describe()]
        raise InputError(f"dpkg-checkbuilddeps cannot accept {_CONTROL}: {lines[-1]}")
    return unmet


def unmet_in(text: str) -> list[str]:
    """The dependencies that dpkg-checkbuilddeps names; none where it says something else. Pure."""
    match = _UNMET.search(text)
    if match is None or match[1].lower() != "dependencies":
        return []
    return _DEPENDENCY.findall(match[2])


def missing_at_hand(study: Study, source_sha256: str, plan: Plan, ports: BuildPorts) -> str:
    """Message for a Debian package whose source is here and cannot be built; else nothing."""
    if study.build.system != "debian" or not source_sha256:
        return ""
    if all(stage.environment for stage in stages_to_do(plan, ports.cache)):
        return ""
    entry = ports.cache.get("source", source_sha256, pinned="tree")
    if entry is None:
        return ""
    profiles, tree = profiles_of(study), entry.folder / "tree"
    try:
        require_tests(tree, study)
        missing = missing_dependencies(tree, ports.processes, ports.env, profiles)
    except InputError as error:
        return str(error)
    return f"build dependencies: {how_to_install(missing)}" if missing else ""


def profiles_of(study: Study) -> str:
    """Tests and documentation are no part of a build, but a check may run the tests."""
    tested = study.check is not None and study.check.package
    return "nodoc" if tested else PROFILES


def require_tests(tree: Path, study: Study) -> None:
    """InputError where the check wants the package's tests, and its rules do not say which."""
    if study.check is None or not study.check.package or not (tree / RULES).is_file():
        return
    if not _DH.search((tree / RULES).read_text(errors="replace")):
        raise InputError(
            f"'check.package' needs {RULES} that use debhelper's dh, and these do not: name the "
            "package's tests in 'check.commands', with in_build_tree = true"
        )


def stages_to_do(plan: Plan, cache: Cache) -> list[Stage]:
    """The builds that are not in the cache, and are of use."""
    return to_do(plan.stages, lambda stage: cached_stage(cache, stage) is not None)


def how_to_install(missing: list[str]) -> str:
    """The command that installs them."""
    return shlex.join(["apt-get", "satisfy", "--no-install-recommends", ", ".join(missing)])


def require_dependencies(
    tree: Path, request: BuildRequest, ports: BuildPorts, root: RootDirectory | None = None
) -> None:
    """InputError where something is missing, unless it is to be installed, which root alone can.

    Into an environment nothing is installed: its packages are in the study.
    """
    profiles = profiles_of(request.study)
    folder = None if root is None else root.folder
    missing = missing_dependencies(tree, ports.processes, ports.env, profiles, folder)
    if not missing:
        return
    if root is not None:
        raise InputError(
            f"build dependencies are missing in the environment: {', '.join(missing)}; "
            "name them in its 'packages'"
        )
    if not request.install_dependencies:
        raise InputError(
            f"build dependencies are missing: {', '.join(missing)}; as root run "
            f"{how_to_install(missing)} (or ensign run with --install-build-deps)"
        )
    if os.geteuid() != 0:
        raise InputError(f"--install-build-deps needs root: {how_to_install(missing)}")
    argv = ("apt-get", "satisfy", "--yes", "--quiet", "--no-install-recommends", ", ".join(missing))
    env = {**ports.env, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"}
    outcome = ports.processes.run(ProcessRequest(argv, env, deadline_ns=_INSTALLING_NS))
    if not outcome.ok:
        lines = [line for line in outcome.tail.splitlines() if line.startswith("E:")]
        raise CommandFailed(
            f"the build dependencies cannot be installed: {(lines or [outcome.describe()])[-1]}"
        )
