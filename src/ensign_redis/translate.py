"""From a test of the Redis benchmarks specification to drives. Pure.

A test is expressible where everything in it that has to do with the load keeps its meaning, or is
in `notes` with the reason why the load is the same without it.

SourceFile: arbitrary_command::split_command_to_args() of memtier's config_types.cpp, which follows
Redis' sdssplitargs(), and redis_protocol::format_arbitrary_command() of its protocol.cpp.
"""

from __future__ import annotations

import string
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from pydantic import ValidationError

from ensign.model.drive import Data, Drive, DriveCommand, Keys
from ensign.model.errors import InputError
from ensign.workloads.plugin import SourceFile
from ensign_redis.memtier import Memtier, SentCommand, parse_memtier
from ensign_redis.suite_file import (
    Database,
    SuiteFile,
    Tool,
    init_lines,
    parse_suite,
)

STANDALONE = "oss-standalone"
_PATTERNS = {"R": "random", "G": "gaussian", "Z": "zipf", "S": "sequential", "P": "parallel"}
_CURSOR_AT = {"SCAN": 1, "HSCAN": 2, "SSCAN": 2, "ZSCAN": 2}
_TOOL = "memtier_benchmark"
# A connection's requests at a time in a preload: enough that nobody waits, and little memory.
_LOADING_PIPELINE, _LOADING_BYTES = 100, 64 * 1024
_SHARED_SEED = (
    "all connections of memtier draw the same keys here (no --distinct-client-seed); "
    "a drive's draw their own"
)
_KEY, _DATA = "__key__", "__data__"
_ESCAPES = {"n": b"\n", "r": b"\r", "t": b"\t", "b": b"\b", "a": b"\a"}
_HEX_DIGITS = 2


@dataclass(frozen=True, slots=True)
class Test:
    """A test as drives. `requests` is None where the test goes by time.

    `server_args` are the server's settings; `notes` say what was left out, and why the load is the
    same without it, or in what it differs.
    """

    name: str
    groups: tuple[str, ...]
    commands: tuple[str, ...]
    drive: Drive
    preload: tuple[Drive, ...]
    server_args: tuple[str, ...]
    settings: tuple[str, ...]
    requests: int | None
    notes: tuple[str, ...]

    def sent(self) -> Iterator[tuple[str, ...]]:
        """Every command that reaches the server."""
        for drive in (*self.preload, self.drive):
            yield from (tuple(line) for line in drive.init)
            for command in drive.commands:
                yield from command.lines


@dataclass(frozen=True, slots=True)
class Inexpressible:
    """A test that no drive can say, and why."""

    name: str
    groups: tuple[str, ...]
    commands: tuple[str, ...]
    reason: str


class _Cannot(Exception):
    """Why a test cannot be said."""


def translate(source: SourceFile) -> Test | Inexpressible:
    """The test of a file. InputError, naming file and key, where the file is wrong."""
    suite = parse_suite(source)
    groups, commands = tuple(suite.groups), tuple(suite.commands)
    try:
        return _test(suite, source)
    except _Cannot as reason:
        return Inexpressible(source.name, groups, commands, str(reason))


def _test(suite: SuiteFile, source: SourceFile) -> Test:
    file = source.file
    _require_one_server(suite)
    tool = _only_tool(suite)
    database = suite.database
    preload = () if database.preload is None else _preload(database, database.preload, file)
    load = _memtier(tool, f"{file}: 'clientconfig.arguments'")
    key = f"{file}: 'clientconfig.arguments'"
    drive = _drive(load, key).model_copy(update={"init": _init(database, file)})
    return Test(
        name=source.name,
        groups=tuple(suite.groups),
        commands=tuple(suite.commands),
        drive=drive,
        preload=preload,
        server_args=tuple(_server_args(database)),
        settings=tuple(database.parameters),
        requests=_operations(load) if load.all_keys or load.requests else None,
        notes=tuple(_notes(suite, load)),
    )


def _require_one_server(suite: SuiteFile) -> None:
    if STANDALONE not in suite.topologies:
        raise _Cannot(f"needs another set-up of servers: {', '.join(suite.topologies)}")
    if suite.database.dataset is not None:
        raise _Cannot(f"needs the data set {suite.database.dataset}")
    if suite.database.wait_for_bgsave:
        raise _Cannot("measures a save in the background, not requests")


def _only_tool(suite: SuiteFile) -> Tool:
    tools = suite.tools
    if not tools:
        raise _Cannot("names no load generator")
    if len(tools) > 1:
        names = " and ".join(tool.tool for tool in tools)
        raise _Cannot(f"runs several load generators at the same time: {names}")
    if tools[0].tool != _TOOL:
        raise _Cannot(f"needs the load generator {tools[0].tool}")
    return tools[0]


def _memtier(tool: Tool, where: str) -> Memtier:
    if tool.tool != _TOOL:
        raise _Cannot(f"needs the load generator {tool.tool}")
    found = parse_memtier(tool.arguments, where)
    if found.hindrances:
        raise _Cannot("; ".join(found.hindrances))
    return found


def _preload(database: Database, tool: Tool, file: str) -> tuple[Drive, ...]:
    where = f"{file}: 'dbconfig.preload_tool.arguments'"
    found = _memtier(tool, where)
    if not (found.all_keys or found.requests):
        found = _all_once(database, found)
    drive = _drive(found, where)
    update = {"operations": _operations(found), "pipeline": _loading_pipeline(drive)}
    return (drive.model_copy(update=update),)


def _loading_pipeline(drive: Drive) -> int:
    """As many at a time as is quick: a preload leaves the same behind, however it is sent."""
    wanted = min(
        _LOADING_PIPELINE, int(_LOADING_BYTES / max(map(drive.request_bytes, drive.commands)))
    )
    return max(drive.pipeline, wanted)


def _all_once(database: Database, found: Memtier) -> Memtier:
    """A preload that goes by time sets every key again and again: once leaves the same behind.

    That it does so for long enough is what the test's own check of the number of keys says.
    """
    keys = found.key_maximum - found.key_minimum + 1
    only_sets = not found.commands and found.ratio[1] == 0 and _is_parallel(found)
    if not only_sets or database.check.get("keyspacelen") != keys:
        raise _Cannot("preloads for a time, not a number of requests")
    return replace(found, all_keys=True)


def _operations(found: Memtier) -> int:
    """Requests of all connections.

    With `allkeys` each connection walks the whole range, or its part of it where the pattern of
    the first command is parallel.
    """
    if found.all_keys:
        if _is_parallel(found):
            return _last(found) - found.key_minimum + 1
        return (found.key_maximum - found.key_minimum + 1) * found.connections
    return (found.requests or 0) * found.connections


def _last(found: Memtier) -> int:
    """The last key of a parallel pattern: memtier gives each connection one, at least."""
    return max(found.key_maximum, found.key_minimum + found.connections - 1)


def _is_parallel(found: Memtier) -> bool:
    first = found.commands[0].pattern if found.commands else found.patterns[0]
    return first == "P"


def _drive(found: Memtier, where: str) -> Drive:
    if found.key_maximum < found.key_minimum:
        raise InputError(f"{where}: --key-maximum is below --key-minimum")
    rate = found.rate_per_connection_s
    try:
        return Drive(
            protocol=3 if found.protocol == 3 else 2,  # noqa: PLR2004  # a version
            connections=found.connections,
            pipeline=found.pipeline,
            rate_per_s=None if rate is None else float(rate * found.connections),
            commands=list(_commands(found, where)),
            data=_data(found),
            expiry_s=found.expiry_s,
        )
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise InputError(f"{where}: {first['msg']}") from None


def _data(found: Memtier) -> Data:
    if found.data_weights:
        return Data(weighted=list(found.data_weights), random=found.random_data)
    if found.data_sizes is not None:
        return Data(sizes=found.data_sizes, random=found.random_data)
    return Data(size=found.data_size, random=found.random_data)


def _commands(found: Memtier, where: str) -> Iterator[DriveCommand]:
    for command in found.commands:
        yield _command(command, found, where)
    if found.commands:
        return
    set_words = ["SETEX", "{key}", "{expiry}", "{data}"] if found.expiry_s else _SET
    for words, share, letter in zip((set_words, _GET), found.ratio, found.patterns, strict=True):
        if share:
            yield DriveCommand(argv=words, share=share, keys=_keys(found, letter))


_SET = ["SET", "{key}", "{data}"]
_GET = ["GET", "{key}"]


def _command(command: SentCommand, found: Memtier, where: str) -> DriveCommand:
    try:
        words = drive_words(command.text)
    except BadCommand as error:
        raise InputError(f"{where}: --command: {error}") from None
    if found.scan:
        words = _scanning(words, found)
    drawn = any("{key}" in word or word == "{data}" for word in words)
    keys = _keys(found, command.pattern) if drawn else None
    return DriveCommand(argv=words, share=command.ratio, keys=keys)


def _scanning(words: Sequence[str], found: Memtier) -> list[str]:
    place = _CURSOR_AT.get(words[0].upper())
    if len(found.commands) != 1 or place is None or words[place : place + 1] != ["0"]:
        raise _Cannot("follows the cursor of something else than one scan from 0")
    return [*words[:place], "{cursor}", *words[place + 1 :]]


def _keys(found: Memtier, letter: str) -> Keys:
    """The range of a command. A later command's P walks the whole range, as S does.

    Only the first command's P cuts the range into parts, one for each connection
    (client::setup_client() of memtier's client.cpp).
    """
    if letter == "P" and not _is_parallel(found):
        letter = "S"
    return Keys.model_validate(
        {
            "prefix": found.key_prefix,
            "first": max(found.key_minimum, 1) if letter == "Z" else found.key_minimum,
            "last": _last(found) if letter == "P" else found.key_maximum,
            "pattern": _PATTERNS[letter],
            "center": found.key_center if letter == "G" else None,
            "deviation": found.key_deviation if letter == "G" else None,
            "exponent": found.key_exponent if letter == "Z" else None,
        }
    )


def _init(database: Database, file: str) -> list[list[str]]:
    lines = init_lines(database, file)
    if database.rdb_checks is not None and database.rdb_checks.operation == "load":
        # What the specification's runner does before such a test: RdbChecks.prepare().
        lines += [["SAVE"], ["FLUSHALL", "SYNC"]]
    return lines


def _server_args(database: Database) -> Iterator[str]:
    for name, value in database.parameters.items():
        yield f"--{name}"
        yield "" if value == '""' else str(value)


def _notes(suite: SuiteFile, load: Memtier) -> Iterator[str]:
    yield from load.dropped
    others = [each for each in suite.topologies if each != STANDALONE]
    if others:
        yield f"raced with one server thread, not as {', '.join(others)}"
    drawn = any(pattern in "RGZ" for pattern in _letters(load))
    if drawn and not load.distinct_seeds and load.connections > 1:
        yield _SHARED_SEED
    if load.pipeline > 1:
        yield "a pipeline is sent and read as a whole; memtier refills it reply by reply"
    if load.threads > 1:
        yield f"{load.threads} threads of the generator become one with all connections"


def _letters(load: Memtier) -> str:
    if load.commands:
        return "".join(each.pattern for each in load.commands if "__key__" in each.text)
    return "".join(letter for letter, share in zip(load.patterns, load.ratio, strict=True) if share)


class BadCommand(ValueError):
    """A command that memtier would not accept, or that a drive cannot say."""


def drive_words(text: str) -> list[str]:
    """The arguments of a command with a drive's placeholders. BadCommand where it has none.

    As in memtier, the first `__key__` of an argument is a key, and `__data__` is a whole argument.
    """
    words = [_word(argument) for argument in split_command(text)]
    if not words or not words[0]:
        raise BadCommand("an empty command")
    return words


def split_command(text: str) -> list[bytes]:
    """The arguments of a command as bytes."""
    arguments: list[bytes] = []
    place = 0
    while place < len(text):
        if text[place].isspace():
            place += 1
            continue
        argument, place = _argument(text, place)
        arguments.append(argument)
    return arguments


def _argument(text: str, place: int) -> tuple[bytes, int]:
    found = b""
    while place < len(text) and not text[place].isspace():
        if text[place] in "\"'":
            part, place = _quoted(text, place)
            if place < len(text) and not text[place].isspace():
                raise BadCommand(f"a quote ends inside a word: {text[:40]}")
            return found + part, place
        found += text[place].encode()
        place += 1
    return found, place


def _quoted(text: str, place: int) -> tuple[bytes, int]:
    quote, place = text[place], place + 1
    found = b""
    while place < len(text):
        letter, following = text[place], text[place + 1 : place + 2]
        if letter == quote:
            return found, place + 1
        if letter == "\\" and quote == '"' and following:
            part, place = _escaped(text, place + 1)
            found += part
        elif letter == "\\" and following == quote:
            found, place = found + quote.encode(), place + 2
        else:
            found, place = found + letter.encode(), place + 1
    raise BadCommand(f"a quote is left open: {text[:40]}")


def _escaped(text: str, place: int) -> tuple[bytes, int]:
    """What stands after a backslash between double quotes."""
    digits = text[place + 1 : place + 1 + _HEX_DIGITS]
    whole = len(digits) == _HEX_DIGITS and set(digits) <= set(string.hexdigits)
    if text[place] == "x" and whole:
        return bytes.fromhex(digits), place + 1 + _HEX_DIGITS
    return _ESCAPES.get(text[place], text[place].encode()), place + 1


def _word(argument: bytes) -> str:
    try:
        text = argument.decode()
    except UnicodeDecodeError:
        return f"{{hex:{argument.hex()}}}"
    if "\0" in text:
        return f"{{hex:{argument.hex()}}}"
    if text == _DATA:
        return "{data}"
    if _DATA in text:
        raise BadCommand(f"{_DATA} inside a longer word: {text[:40]}")
    return text.replace(_KEY, "{key}", 1)
