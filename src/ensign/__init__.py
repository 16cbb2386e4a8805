"""ensign: which build of a native program is fastest, is it really so, and what to ship."""


def __getattr__(name: str) -> str:
    """`__version__`, read at first use: most commands start without it."""
    if name != "__version__":
        raise AttributeError(name)
    from importlib.metadata import version  # noqa: PLC0415

    return version("ensign")
