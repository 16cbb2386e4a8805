"""Files of profiles: laid into trees, and read for what they hold."""

from __future__ import annotations

import shutil
import stat
from pathlib import Path

from ensign.builders.profiles import FUNCTIONS
from ensign.host.files import tree_entries
from ensign.host.foreign_files import open_foreign_text, visit
from ensign.model.profile_coverage import ProfileCoverage
from ensign.toolchains.profiling import (
    FDATA,
    PROFDATA,
    ProfileCount,
    bolt_count,
    gcov_count,
    profdata_count,
    profile_warnings,
)


def lay(profile: Path, tree: Path) -> None:
    """Copy the files of a profile to their places in a tree."""
    for name, path in tree_entries(profile):
        if path.is_file() and not path.is_symlink():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, tree / name)


def left_something(counts: Path) -> bool:
    """Whether a trained program wrote any count."""
    return any(
        stat.S_ISREG(each.status.st_mode) and each.status.st_size for each in visit([counts])
    )


def merged_coverage(profile: Path, counts: Path, log: Path) -> tuple[ProfileCoverage, ...] | None:
    """What a merged profile covers, BOLT's own is said by BOLT; None if nothing ran."""
    if (profile / FDATA).exists():
        return () if taken_branches(profile / FDATA) else None
    count: ProfileCount | None = None
    if (profile / PROFDATA).exists():
        count = profdata_count(log.read_text(errors="replace"))
    elif (counts / FUNCTIONS).exists():
        with open_foreign_text(counts / FUNCTIONS) as lines:
            count = gcov_count(lines)
    if count is None:
        return (ProfileCoverage("PGO"),)
    return (ProfileCoverage("PGO", count.functions, count.profiled),) if count.profiled else None


def taken_branches(fdata: Path) -> bool:
    """Whether any branch or call in a profile of BOLT's was taken; its lines end in the count."""
    with open_foreign_text(fdata) as lines:
        return any(line.rsplit(" ", 1)[-1].strip() not in ("", "0") for line in lines)


def bolt_coverage(log: Path) -> ProfileCoverage:
    """What BOLT says of its profile, from the log of its stage."""
    count = bolt_count(log.read_text(errors="replace"))
    if count is None:
        return ProfileCoverage("BOLT")
    return ProfileCoverage("BOLT", count.functions, count.profiled)


def warnings_in(log: Path) -> dict[str, int]:
    """The compiler's complaints about the profile, counted by flag."""
    with log.open(errors="replace") as lines:
        return profile_warnings(lines)
