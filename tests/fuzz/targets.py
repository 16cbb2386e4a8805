"""Every target by its name: a parser of bytes that others made."""

from __future__ import annotations

from fuzz.file_targets import FILE_TARGETS
from fuzz.text_targets import TEXT_TARGETS

TARGETS = {target.name: target for target in (*FILE_TARGETS, *TEXT_TARGETS)}
