"""ensign: which build of a native program is fastest, is it really so, and what to ship."""

from importlib.metadata import version

__version__ = version("ensign")
