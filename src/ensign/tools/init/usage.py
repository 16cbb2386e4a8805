"""How programs of a tree are used, by what it and they say; each is asked once."""

from __future__ import annotations

from functools import cached_property

from ensign.tools.init.attempts import Executable
from ensign.tools.init.documented_commands import is_manual_of, plain_text
from ensign.tools.init.exploration import Exploration


class Usage:
    """What an explored tree says of its programs: files, texts, and help."""

    def __init__(self, exploration: Exploration) -> None:
        self._exploration = exploration
        self._by_program: dict[Executable, str] = {}

    @cached_property
    def files(self) -> dict[str, int]:
        """As `Exploration.files`."""
        return self._exploration.files()

    @cached_property
    def texts(self) -> dict[str, str]:
        """What the project says to its users, by the names of its files, without markup."""
        texts = self._exploration.texts(list(self.files))
        return {name: plain_text(text) for name, text in texts}

    def of(self, program: Executable) -> str:
        """A program's help, or its manual page; empty where there is neither."""
        if program not in self._by_program:
            manuals = (
                text for name, text in self.texts.items() if is_manual_of(name, program.name)
            )
            self._by_program[program] = self._exploration.help_of(program) or next(manuals, "")
        return self._by_program[program]
