"""A drive in a file of its own, with the keys of a study's `drive`."""

from __future__ import annotations

import tomllib
from pathlib import Path

from pydantic import ValidationError

from ensign.host.text import read_text
from ensign.model.drive import Drive
from ensign.model.errors import InputError


def read_drive(path: Path) -> Drive:
    """What is sent. InputError with the key that is wrong."""
    try:
        return Drive.model_validate(tomllib.loads(read_text(path)))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path} is no TOML: {error}") from None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        said = first["msg"].removeprefix("Value error, ")
        raise InputError(f"{path}: {where}: {said}" if where else f"{path}: {said}") from None
