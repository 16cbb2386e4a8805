"""What pyproject.toml cannot say: where the version stands, and that a wheel is for any Python."""

import tomllib
from pathlib import Path

from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel


class AnyPython(bdist_wheel):
    """The meter is a program, no extension module: a wheel depends on the platform alone."""

    def get_tag(self) -> tuple[str, str, str]:
        """Python, ABI and platform."""
        return ("py3", "none", super().get_tag()[2])


meter = tomllib.loads((Path(__file__).parent / "meter" / "Cargo.toml").read_text("utf-8"))
setup(
    version=meter["workspace"]["package"]["version"],
    cmdclass={"bdist_wheel": AnyPython},
)
