"""ensign: which build of a native program is fastest, is it really so, and what to ship."""

__version__ = "0.1.0"
