"""What a version of Redis does not have yet. Pure.

Sources: "since" of src/commands/*.json and the release notes (00-RELEASENOTES) of Redis 7.2 to 8.4;
versions of the RDB format: RDB_VERSION in src/rdb.h. A command or setting that is not named here
counts as known since before 7.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ensign.model.errors import InputError

Version = tuple[int, ...]

# Later than the last release that was looked at, 8.4.
_LATER: Version = (8, 5)

_COMMANDS: dict[str, Version] = {
    **dict.fromkeys(("HEXPIRE", "HEXPIREAT", "HEXPIRETIME", "HPERSIST"), (7, 4)),
    **dict.fromkeys(("HPEXPIRE", "HPEXPIREAT", "HPEXPIRETIME", "HPTTL", "HTTL"), (7, 4)),
    **dict.fromkeys(("HGETDEL", "HGETEX", "HSETEX"), (8, 0)),
    **dict.fromkeys(("XACKDEL", "XDELEX"), (8, 2)),
    **dict.fromkeys(("DELEX", "DIGEST", "MSETEX"), (8, 4)),
    **dict.fromkeys(("ARSET", "ARGET", "ARRING", "HIMPORT"), _LATER),
}
# With a word of their own somewhere after the command.
_WORDS: dict[tuple[str, str], Version] = {
    **dict.fromkeys((("BITOP", word) for word in ("DIFF", "DIFF1", "ANDOR", "ONE")), (8, 2)),
    **dict.fromkeys((("SET", word) for word in ("IFEQ", "IFNE", "IFDEQ", "IFDNE")), (8, 4)),
    ("XREADGROUP", "CLAIM"): (8, 4),
    ("HSCAN", "NOVALUES"): (7, 4),
    ("CLIENT", "NO-TOUCH"): (7, 2),
}
_SETTINGS: dict[str, Version] = {
    "repl-rdb-channel": (8, 0),
    "hash-min-template-entries": _LATER,
}
# In the server itself since 8.0, modules before.
_MODULES = {"JSON": "ReJSON", "FT": "RediSearch", "TS": "RedisTimeSeries", "BF": "RedisBloom"}
_MODULES_SINCE: Version = (8, 0)
_RDB_SINCE: dict[int, Version] = {10: (7, 0), 11: (7, 2), 12: (7, 4)}
_RDB_FOOTER_BYTES = 10


def parse_version(text: str) -> Version:
    """`7.0.15` as numbers. InputError for anything else."""
    try:
        return tuple(int(part) for part in text.split("."))
    except ValueError:
        raise InputError(f"'{text}' is not a version of Redis such as 7.0.15") from None


def not_runnable(
    commands: Iterable[Sequence[str]], settings: Iterable[str], version: Version
) -> str | None:
    """Why a server of that version cannot run these commands, or None where it can.

    `commands` are argument lists in a drive's words.
    """
    for setting in settings:
        since = _SETTINGS.get(setting)
        if since is not None and version < since:
            return f"the setting {setting} came with {_dotted(since)}"
    for words in commands:
        missing = _missing(words, version)
        if missing is not None:
            return missing
    return None


def _missing(words: Sequence[str], version: Version) -> str | None:
    name = words[0].upper()
    module = _MODULES.get(name.partition(".")[0]) if "." in name else None
    if module is not None and version < _MODULES_SINCE:
        return f"{name} needs the module {module}, or {_dotted(_MODULES_SINCE)}"
    since = _COMMANDS.get(name)
    if since is not None and version < since:
        return f"{name} came with {_dotted(since)}"
    for word in words[1:]:
        since = _WORDS.get((name, word.upper()))
        if since is not None and version < since:
            return f"{name} … {word.upper()} came with {_dotted(since)}"
    return _newer_payload(words, version) if name == "RESTORE" else None


def _newer_payload(words: Sequence[str], version: Version) -> str | None:
    """A DUMP ends in two bytes of the RDB version (little-endian) and eight of a checksum."""
    for word in words:
        if word.startswith("{hex:"):
            payload = bytes.fromhex(word[5:-1])
            number = int.from_bytes(payload[-_RDB_FOOTER_BYTES : -_RDB_FOOTER_BYTES + 2], "little")
            since = _RDB_SINCE.get(number, (0,) if number < min(_RDB_SINCE) else _LATER)
            if version < since:
                return f"its payload has version {number} of RDB, which came with {_dotted(since)}"
    return None


def _dotted(version: Version) -> str:
    return "a Redis after 8.4" if version == _LATER else f"Redis {'.'.join(map(str, version))}"
