"""Making the root directory of a release of Debian: by mmdebstrap, else by debootstrap.

Both take the mirror that apt uses here, and check signatures. mmdebstrap does without root.
"""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ensign.host.disk_watch import DiskLimit
from ensign.host.processes import Processes, ProcessRequest
from ensign.model.errors import InputError
from ensign.model.study_environment import Environment
from ensign.model.units import parse_size_bytes
from ensign.sources.debian import parse_deb822, system_stanzas

_DEADLINE_NS = 3600 * 10**9
_LIST = "var/lib/ensign-packages"
_ALWAYS = "ca-certificates"
_SBIN = "/usr/local/sbin:/usr/sbin:/sbin"
_MOST_LIST_BYTES = 512 << 20
# Of each package that is installed its paragraph in the archive's index, which has its hash.
_LISTING = (
    'mkdir -p "$1/var/lib"; '
    "dpkg-query --admindir=\"$1/var/lib/dpkg\" -W -f '${Package}:${Architecture}=${Version}\\n' | "
    "sed 's/:all=/=/' | "
    'APT_CONFIG="$MMDEBSTRAP_APT_CONFIG" xargs apt-cache show --no-all-versions '
    f'> "$1/{_LIST}"'
)


class NoEnvironment(InputError):
    """It cannot be had here; what does not need it can."""


class NotMadeYet(NoEnvironment):
    """It is not at hand, and was not to be made; a run makes it."""


@dataclass(frozen=True, slots=True)
class Maker:
    """The effects of making one; `env` is the caller's."""

    processes: Processes
    env: Mapping[str, str]

    def which(self, program: str) -> str | None:
        """A program of the system; those of administrators are not on everybody's PATH."""
        return shutil.which(program, path=f"{self.env.get('PATH', '')}:{_SBIN}")


def require_programs(name: str, maker: Maker) -> None:
    """NoEnvironment where nothing here can make a release of Debian."""
    debootstrap = maker.which("debootstrap")
    if maker.which("mmdebstrap") is None and (debootstrap is None or os.geteuid() != 0):
        also = " (debootstrap, which is here, needs root)" if debootstrap is not None else ""
        raise NoEnvironment(
            f"the environment '{name}' needs mmdebstrap{also}; apt-get install mmdebstrap, or give "
            "a 'directory' or an 'archive' instead"
        )


def made_root(
    name: str, environment: Environment, maker: Maker, work: Path
) -> tuple[Path, dict[str, str]]:
    """The archive of a root directory, in `work`, and its packages. NoEnvironment."""
    require_programs(name, maker)
    mmdebstrap, debootstrap = maker.which("mmdebstrap"), maker.which("debootstrap")
    mirror, keyring = _mirror(name)
    included = ",".join([_ALWAYS, *environment.packages])
    signed = (f"--keyring={keyring}",) if keyring else ()
    archive, suite = work / "root.tar", str(environment.debian)
    if mmdebstrap is not None:
        hooks = (_LISTING, f"copy-out /{_LIST} {shlex.quote(str(work))}", f'rm "$1/{_LIST}"')
        argv = (
            mmdebstrap,
            "--quiet",
            "--variant=apt",
            f"--include={included}",
            "--skip=output/dev",
            *(f"--customize-hook={hook}" for hook in hooks),
            *signed,
            *(suite, str(archive), mirror),
        )
        _run(name, environment, maker, (work, argv))
        listed = parse_deb822((work / Path(_LIST).name).read_text(errors="replace"))
        return archive, _packages(listed)
    root = work / "root"
    argv = (
        str(debootstrap),
        "--variant=minbase",
        f"--include={included}",
        *signed,
        *(suite, str(root), mirror),
    )
    _run(name, environment, maker, (work, argv))
    packages = _packages(_installed(root))
    kept = ("--exclude=./dev/*", "--exclude=./proc/*", "--exclude=./sys/*")
    argv = ("tar", "--create", "--numeric-owner", *kept, "--file", str(archive), "--directory")
    _run(name, environment, maker, (work, (*argv, str(root), ".")))
    return archive, packages


def _run(
    name: str, environment: Environment, maker: Maker, asked: tuple[Path, tuple[str, ...]]
) -> None:
    """One of the commands that make it, in `work`. NoEnvironment with what it said."""
    work, argv = asked
    path = f"{maker.env.get('PATH', '')}:{_SBIN}"
    more = {"LC_ALL": "C", "TMPDIR": str(work), "SOURCE_DATE_EPOCH": "946684800", "PATH": path}
    outcome = maker.processes.run(
        ProcessRequest(
            argv,
            {**maker.env, **more},
            work,
            deadline_ns=_DEADLINE_NS,
            disk=DiskLimit((work,), 3 * parse_size_bytes(environment.limit), 0),
        )
    )
    if outcome.ok:
        return
    lines = [line for line in outcome.tail.splitlines() if line.startswith("E:")]
    reason = (lines or outcome.tail.strip().splitlines() or [outcome.describe()])[0]
    program = Path(argv[0]).name
    raise NoEnvironment(f"the environment '{name}' could not be made: {program}: {reason}")


def _packages(listed: list[dict[str, str]]) -> dict[str, str]:
    return {
        package["package"]: f"{package.get('version', '?')} {package.get('sha256', '')}".strip()
        for package in listed
        if "package" in package
    }


def _installed(root: Path) -> list[dict[str, str]]:
    """Paragraph in the archive's index of each package that debootstrap installed."""
    lists = sorted((root / "var/lib/apt/lists").glob("*_Packages"))
    known = {
        (package.get("package"), package.get("version")): package
        for path in lists
        if path.is_file() and path.stat().st_size <= _MOST_LIST_BYTES
        for package in parse_deb822(path.read_text(errors="replace"))
    }
    status = parse_deb822((root / "var/lib/dpkg/status").read_text(errors="replace"))
    return [
        known.get((package.get("package"), package.get("version")), package) for package in status
    ]


def _mirror(name: str) -> tuple[str, str]:
    """The address of the mirror of Debian that apt uses here, and its keyring."""
    for stanza in system_stanzas():
        if (
            "deb" not in stanza.get("types", "").split()
            or "main" not in stanza.get("components", "").split()
        ):
            continue
        for uri in stanza.get("uris", "").split():
            if uri.rstrip("/").endswith("/debian"):
                return uri, stanza.get("signed-by", "")
    raise NoEnvironment(
        f"the environment '{name}' needs a mirror of Debian, and apt has none configured here; "
        "give a 'directory' or an 'archive' instead"
    )
