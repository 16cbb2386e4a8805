"""Complaints of compilers, linkers and BOLT in a build's log. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import PurePosixPath

from ensign.model.finding_kinds.builds import UNKNOWN_LTO_FLAG
from ensign.model.finding_kinds.proof import (
    BOLT_PROFILE_THIN,
    PROFILE_EMPTY,
    PROFILE_MISSING,
    PROFILE_STALE,
)
from ensign.model.findings import Finding
from ensign.proof.evidence import BuildEvidence
from ensign.toolchains.profiling import bolt_count

_UNKNOWN_LTO = re.compile(
    r"^.*(?:unrecognized argument to .?-flto=|unsupported argument '[^']*' to option '-flto="
    r"|(?:unrecognized|unknown) (?:command[- ]line )?(?:option|argument):? .?-f(?:no-)?lto"
    r"|unknown argument: '-flto|invalid value .* in '-flto"
    r"|argument to .?-flto=.? (?:option )?(?:is )?(?:should|missing|invalid)"
    r"|unused during compilation: '-flto).*$",
    re.MULTILINE,
)
_SAID_OF = re.compile(r"^([^\s:]+):\d+(?::\d+)?: |for file \"([^\"]+)\"")
_COUNTED = re.compile(r"'(/[^'#]+)\.gcda'")
_UPWARDS = re.compile(r"^(?:\.{1,2}/)+")
# The flags that ask for such a warning stand in the commands of a log, too.
_SAYS = re.compile(r"\b(?:warning|error):")
_MISSING_PROFILE = re.compile(
    r"-Wmissing-profile|profile count data file not found|-Wprofile-instr-unprofiled"
    r"|no profile data available for (?:file|function)"
)
_STALE_PROFILE = re.compile(
    r"-Wcoverage-mismatch|-Wprofile-instr-out-of-date|-Wbackend-plugin.*hash mismatch"
    r"|control flow change detected \(hash mismatch\)"
    r"|control flow of function .* does not match its profile data"
)
_NO_PROFILE = re.compile(
    r"could not read profile|[Cc]ould not (?:open|read) .*\.profdata|[Ee]mpty [Rr]aw [Pp]rofile"
    r"|no profile can be merged|profile file is empty"
)
_PROFILES = (
    (PROFILE_EMPTY, _NO_PROFILE, "the profile is empty or cannot be read"),
    (PROFILE_MISSING, _MISSING_PROFILE, "there is no profile"),
    (PROFILE_STALE, _STALE_PROFILE, "the profile does not fit the source"),
)
_BOLT_STALE = re.compile(r"BOLT-WARNING: (\d+) \([\d.]+% of all profiled\) functions? ha[sv]e? inv")
_FEW_SHARE = 0.01


def log_findings(seen: BuildEvidence) -> Iterator[Finding]:
    """Flags that a compiler does not know, and profiles that are missing, stale or empty."""
    refused = unknown_lto(seen.log)
    if refused:
        text = f"the compiler does not know the LTO flag: {refused}"
        yield seen.finding(UNKNOWN_LTO_FLAG, text)
    units = len(seen.proof.binary.units)
    of = f" ({units} compile units in all)" if units else ""
    warnings = [line for line in seen.log.splitlines() if _SAYS.search(line)]
    for kind, pattern, what in _PROFILES:
        lines = [line for line in warnings if pattern.search(line)]
        if lines:
            text = f"{len(lines)} warnings say that {what}{of}: {lines[0].strip()}"
            yield seen.finding(kind, text)
    count = bolt_count(seen.log)
    if count is not None and count.profiled < _FEW_SHARE * count.functions:
        text = f"BOLT had a profile for {count.profiled} of {count.functions} functions only"
        yield seen.finding(BOLT_PROFILE_THIN, text)
    stale = _BOLT_STALE.findall(seen.log)
    if stale:
        text = f"BOLT could not use the profile of {stale[-1]} functions: it does not fit"
        yield seen.finding(PROFILE_STALE, text)


def unknown_lto(log: str) -> str:
    """The line of a log in which a compiler refuses an LTO flag; empty without one."""
    match = _UNKNOWN_LTO.search(log)
    return match[0].strip() if match else ""


def without_others(log: str, objects_of: Mapping[str, Collection[str]]) -> str:
    """A log without what is said of profiles of sources that nothing that runs is made of.

    A build makes tests and tools as well, which no training runs, and may compile a source once for
    the program and once for something else. `objects_of` has the sources of what runs, with the
    paths of their objects where these are known. All of the log where there are none.
    """
    if not objects_of:
        return log
    return "".join(
        line for line in log.splitlines(keepends=True) if not _is_of_another(line, objects_of)
    )


def _is_of_another(line: str, objects_of: Mapping[str, Collection[str]]) -> bool:
    if not _SAYS.search(line) or not (_MISSING_PROFILE.search(line) or _STALE_PROFILE.search(line)):
        return False
    match = _SAID_OF.search(line)
    if match is None:
        return False
    name = _UPWARDS.sub("", match[1] or match[2])
    sources = [path for path in objects_of if path == name or path.endswith(f"/{name}")]
    counted = _COUNTED.search(line)
    objects = [frozenset(map(_stem, objects_of[source])) for source in sources]
    if counted is not None and objects and all(objects):
        return not any(counted[1] in path for path in objects)
    return not sources


def _stem(path: str) -> str:
    """GCC names counts after the object."""
    return path.removesuffix(PurePosixPath(path).suffix)
