"""Confinement that works here for programs of others: bubblewrap with everything, or none.

It is tried for real. Started by root, bubblewrap keeps all privileges, so they are dropped inside:
the command runs as a user who owns nothing.
"""

from __future__ import annotations

import os
import pwd
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from ensign.host.confined_view import ConfinementRequest, confined_view
from ensign.host.confinement import Bind, bubblewrap_argv
from ensign.host.foreign_files import UnprivilegedUser
from ensign.host.processes import Processes, ProcessRequest
from ensign.host.root_directory import METER_INSIDE
from ensign.model.finding_kinds.machine import NOT_CONFINED
from ensign.model.findings import Finding

NOBODY = UnprivilegedUser(65534, 65534)
_DEADLINE_NS = 10 * 10**9
_SWITCHES = (
    ("kernel/unprivileged_userns_clone", "0", "sysctl kernel.unprivileged_userns_clone=1"),
    (
        "kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "sysctl kernel.apparmor_restrict_unprivileged_userns=0",
    ),
    ("user/max_user_namespaces", "0", "sysctl user.max_user_namespaces=10000"),
)


@dataclass(frozen=True, slots=True)
class Confinement:
    """Confinement here; `program` is bubblewrap, empty where there is none: see `reason`.

    `user` is who foreign code runs as where root started ensign, and `as_user` what goes before a
    command for that, or to take the keys of the session away. `root` says whether root did,
    `remedy` how to get what is missing.
    """

    program: str = ""
    user: UnprivilegedUser | None = None
    as_user: tuple[str, ...] = ()
    root: bool = False
    reason: str = ""
    remedy: str = ""

    @property
    def works(self) -> bool:
        """True if there is any."""
        return bool(self.program)

    @property
    def said(self) -> str:
        """For people, what applies."""
        if not self.program:
            remedy = f"; {self.remedy}" if self.remedy else ""
            return f"not confined: {self.reason}{remedy}"
        user = f", as user {_name(self.user.uid)}" if self.user else ""
        return f"confined by bubblewrap: own network and processes, files read-only{user}"

    def argv(self, request: ConfinementRequest, *, as_user: bool = True) -> tuple[str, ...]:
        """Words before a command; none where there is no confinement.

        Without `as_user` a command of root's keeps its privileges inside.
        """
        if not self.program:
            return ()
        before = self.as_user if as_user or not self.root else ()
        if request.root is not None and before and Path(before[0]).is_absolute():
            # The meter, at a place that is no other system's.
            bind = Bind(before[0], METER_INSIDE)
            request = replace(request, binds=(*request.binds, bind))
            before = (METER_INSIDE, *before[1:])
        view = confined_view(request, self.user)
        if self.root and self.user is None:
            view = replace(view, without_capabilities=True)
        return (*bubblewrap_argv(self.program, view), *before)

    def findings(self) -> tuple[Finding, ...]:
        """A warning where there is none."""
        if self.program:
            return ()
        remedy = f"; {self.remedy}" if self.remedy else ""
        whose = "as root, with all of its rights" if self.root else "with all your rights"
        text = f"programs of the study ran {whose}: {self.reason}{remedy}"
        return (NOT_CONFINED.found(text),)


def unconfined(reason: str) -> Confinement:
    """None, because somebody asked for that."""
    return Confinement(root=os.geteuid() == 0, reason=reason)


def probe_confinement(
    processes: Processes, env: Mapping[str, str], meter: Path | None = None
) -> Confinement:
    """Try what there is. `meter` drops privileges; without it, setpriv does."""
    root = os.geteuid() == 0
    path = env.get("PATH", os.defpath)
    program = shutil.which("bwrap", path=path) or shutil.which("bwrap", path=os.defpath)
    if program is None:
        reason, remedy = "bubblewrap is not installed", "apt-get install bubblewrap"
        return Confinement(root=root, reason=reason, remedy=remedy)
    confinement = usual_confinement(program, root=root, meter=meter)
    refused = _refusal(confinement, processes, env, meter)
    if not refused:
        return confinement
    reason = f"bubblewrap does not work here ({refused})"
    return Confinement(root=root, reason=reason, remedy=_remedy())


def usual_confinement(program: str, *, root: bool, meter: Path | None) -> Confinement:
    """By this bubblewrap, for who started ensign; whether it works is not tried."""
    if not root:
        # The same user, but without the keys of its session, which no namespace hides.
        without_keys = () if meter is None else (str(meter), "as-user", "same", "--")
        return Confinement(program, as_user=without_keys)
    ids = f"{NOBODY.uid}:{NOBODY.gid}"
    as_user: tuple[str, ...] = (str(meter), "as-user", ids, "--")
    if meter is None:
        setpriv = f"setpriv --reuid {NOBODY.uid} --regid {NOBODY.gid} --clear-groups"
        as_user = (
            *setpriv.split(),
            "--inh-caps=-all",
            "--bounding-set=-all",
            "--no-new-privs",
            "--",
        )
    # Root of a container that knows one user alone is that user of the host.
    if not _is_known(NOBODY.uid):
        return Confinement(program, root=True)
    return Confinement(program, NOBODY, as_user, root=True)


def _refusal(
    confinement: Confinement, processes: Processes, env: Mapping[str, str], meter: Path | None
) -> str:
    """Why nothing can be run so; empty if it can."""
    programs = () if meter is None else (meter,)
    request = ConfinementRequest(os.defpath, env.get("HOME", ""), read=programs)
    argv = (*confinement.argv(request), "true")
    outcome = processes.run(
        ProcessRequest(argv, {"PATH": os.defpath}, Path("/"), deadline_ns=_DEADLINE_NS)
    )
    if outcome.ok:
        return ""
    return (outcome.tail.strip().splitlines() or [outcome.describe()])[-1]


def _remedy() -> str:
    for name, value, remedy in _SWITCHES:
        try:
            if Path("/proc/sys", name).read_text(encoding="ascii").strip() == value:
                return remedy
        except OSError:
            continue
    return "a container needs the right to make namespaces"


def _is_known(uid: int) -> bool:
    """True if this user namespace has that user."""
    try:
        lines = Path("/proc/self/uid_map").read_text(encoding="ascii").splitlines()
    except OSError:
        return True
    ranges = ((int(first), int(count)) for first, _, count in map(str.split, lines))
    return any(first <= uid < first + count for first, count in ranges)


def _name(uid: int) -> str:
    try:
        return f"{pwd.getpwuid(uid).pw_name} ({uid})"
    except KeyError:
        return str(uid)
