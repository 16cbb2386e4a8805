"""The tutorial does what it says: every command of the page, in its order, in an empty folder."""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sysconfig
import zipfile
from collections.abc import Iterator
from pathlib import Path

from end_to_end.conftest import Ensign
from ensign.meter.client import find_meter

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "tutorial" / "first-study.md").read_text(encoding="utf-8")
_FENCE = re.compile(r"([^\n]*)\n\n```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_SAVED = re.compile(r"Save this as `([^`]+)`:")
_NOT_DEPENDENCIES = ("ensign", "__editable__", "pip", "__pycache__")


def test_every_block_is_commands_a_file_or_an_output() -> None:
    blocks = _FENCE.findall(PAGE)
    assert 2 * len(blocks) == len(re.findall(r"^```", PAGE, re.MULTILINE))
    files = {language for before, language, _ in blocks if _SAVED.fullmatch(before)}
    assert {language for _, language, _ in blocks} - files == {"sh", "text"}


def test_every_command_does_what_the_page_says(ensign: Ensign) -> None:
    _write_wheel(ensign.folder)
    done = subprocess.run(
        ["bash", "-c", "\n".join(("set -eux", *_script()))],
        cwd=ensign.folder,
        env={
            **ensign.environment,
            "PIP_NO_DEPS": "1",
            "PIP_NO_INDEX": "1",
            "PYTHONPATH": str(_dependencies(ensign.folder / "dependencies")),
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "./optimized 100000" in done.stdout
    assert "3 variants:" in done.stdout
    assert "gcc-O3" in (ensign.folder / "report.html").read_text(encoding="utf-8")
    assert "gcc-O1" in (ensign.folder / "summary.md").read_text(encoding="utf-8")


def _script() -> Iterator[str]:
    """The page as one script for a shell: its commands, and its files where they are saved."""
    for before, language, text in _FENCE.findall(PAGE):
        saved = _SAVED.fullmatch(before)
        if saved is not None:
            yield f"cat > {saved[1]} <<'END OF FILE'\n{text}END OF FILE"
        elif language == "sh":
            yield text


def _write_wheel(folder: Path) -> None:
    """What is tested here, as a wheel; that of a release is tested where it is made."""
    installed = importlib.metadata.distribution("ensign")
    name = f"ensign-{installed.version}"
    with zipfile.ZipFile(folder / f"{name}-py3-none-any.whl", "w") as wheel:
        for path in (ROOT / "src").glob("ensign*/**/*"):
            if path.is_file() and path.suffix != ".pyc":
                wheel.write(path, path.relative_to(ROOT / "src"))
        wheel.write(find_meter(), f"{name}.data/scripts/ensign-meter")
        for part in ("METADATA", "entry_points.txt"):
            wheel.writestr(f"{name}.dist-info/{part}", installed.read_text(part) or "")
        about = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        wheel.writestr(f"{name}.dist-info/WHEEL", about)
        wheel.writestr(f"{name}.dist-info/RECORD", "")


def _dependencies(folder: Path) -> Path:
    """All that is installed beside ensign: the test needs no package index."""
    folder.mkdir()
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        if not path.name.startswith(_NOT_DEPENDENCIES):
            (folder / path.name).symlink_to(path)
    return folder
