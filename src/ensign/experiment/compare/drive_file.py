"""A drive in a file of its own, with the keys of a study's `drive`."""

from __future__ import annotations

import tomllib
from pathlib import Path

from pydantic import ValidationError

from ensign.host.regular_file import read_text
from ensign.model.drive import Drive
from ensign.model.errors import InputError
from ensign.model.validation import first_error


def read_drive(path: Path) -> Drive:
    """What is sent. InputError with the key that is wrong."""
    try:
        return Drive.model_validate(tomllib.loads(read_text(path)))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path} is no TOML: {error}") from None
    except RecursionError:
        raise InputError(f"{path} is no TOML that could be read: it nests too deeply") from None
    except ValidationError as error:
        raise InputError(f"{path}: {first_error(error)}") from None
