"""Environments by the name that a command line gives: a release, a directory, one of a study."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from ensign.builders.environments import environments_of_study
from ensign.experiment.study_file import read_study
from ensign.host.cache import Cache
from ensign.host.files import file_sha256
from ensign.host.processes import Processes
from ensign.host.root_directory import RootDirectory
from ensign.model.errors import InputError
from ensign.model.study_environment import HOST, Environment
from ensign.model.validation import first_error
from ensign.sources.environments import EnvironmentPorts, obtain_environment

DEBIAN = "debian:"
FORMS = (
    f"{HOST}, debian:RELEASE (debian:bookworm:PACKAGE:… with packages), the path of a root "
    "directory or of a tar archive of one (with a slash), or a name of --study FILE"
)


@dataclass(frozen=True, slots=True)
class NamedEnvironments:
    """Finds root directories by name; `study` is the file whose [environments] may be named."""

    study: Path | None
    processes: Processes
    cache: Cache
    env: Mapping[str, str]

    def root(self, name: str) -> RootDirectory | None:
        """The root directory of that name; None for this machine.

        InputError where there is none of that name, NoEnvironment where it cannot be had here.
        """
        if name == HOST:
            return None
        if name.startswith(DEBIAN):
            suite, *packages = name.removeprefix(DEBIAN).split(":")
            return self._of(name, {"debian": suite, "packages": packages})
        if "/" in name:
            path = Path(name)
            if path.is_file():
                return self._of(name, {"archive": str(path), "sha256": file_sha256(path)})
            return self._of(name, {"directory": name})
        return self._of_study(name)

    def _of(self, name: str, said: Mapping[str, object]) -> RootDirectory:
        try:
            environment = Environment.model_validate(said)
        except ValidationError as error:
            raise InputError(f"environment '{name}': {first_error(error)}") from None
        ports = EnvironmentPorts(self.processes, self.cache, self.env, Path.cwd())
        return obtain_environment(name, environment, ports)

    def _of_study(self, name: str) -> RootDirectory:
        if self.study is None:
            raise InputError(f"there is no environment '{name}'; name {FORMS}")
        study = read_study(self.study).study
        if name not in study.environments:
            there = ", ".join([*study.environments, HOST])
            raise InputError(f"{self.study} has no environment '{name}'; there are {there}")
        effects = (self.processes, self.cache, self.env)
        return environments_of_study(study, self.study, name, effects)
