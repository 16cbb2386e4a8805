"""Small projects of each build system, right ones and those that are wrong in one way.

Each is a folder of tests/projects/systems with the files of its build system; all share `parts`.
"""

from __future__ import annotations

import shutil
from pathlib import Path

PROJECTS = Path(__file__).parent / "projects" / "systems"


def plant(folder: Path, system: str, fault: str = "right") -> None:
    """Write a project of this system into a new folder."""
    shutil.copytree(PROJECTS / "parts", folder)
    shutil.copytree(PROJECTS / system / fault, folder, dirs_exist_ok=True)
