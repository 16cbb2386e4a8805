from build_fixtures import (
    cache,
    compilers_found_once,
    found_compilers,
    ports,
    processes,
    project,
    recording_ports,
)

__all__ = [
    "cache",
    "compilers_found_once",
    "found_compilers",
    "ports",
    "processes",
    "project",
    "recording_ports",
]
