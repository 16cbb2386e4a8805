"""Values in messages, as they were written. Pure."""

from __future__ import annotations


def quoted(value: object) -> str:
    """A value as TOML or JSON would have it: texts in quotes, their backslashes as they are.

    What cannot be printed is escaped.
    """
    match value:
        case bool():
            return str(value).lower()
        case str():
            plain = "".join(each if each.isprintable() else repr(each)[1:-1] for each in value)
            return f"'{plain}'"
        case list() | tuple():
            return f"[{', '.join(map(quoted, value))}]"
        case dict():
            pairs = (f"{quoted(key)}: {quoted(each)}" for key, each in value.items())
            return f"{{{', '.join(pairs)}}}"
        case _:
            return str(value)
