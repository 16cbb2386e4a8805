"""A test of the specification, as its authors write one."""

from __future__ import annotations

from ensign.workloads.plugin import SourceFile
from ensign_redis.translate import Test, translate


def source(arguments: str, *, name: str = "memtier_benchmark-a", more: str = "") -> SourceFile:
    text = f"""
name: {name}
dbconfig:
  configuration-parameters:
    save: '""'
    zset-max-listpack-entries: 8
{more}
tested-groups: [string]
tested-commands: [set]
redis-topologies: [oss-standalone, oss-standalone-08-io-threads]
clientconfig:
  tool: memtier_benchmark
  arguments: >
    {arguments}
priority: 3
"""
    return SourceFile(f"{name}.yml", text)


def made(arguments: str, *, more: str = "") -> Test:
    found = translate(source(arguments, more=more))
    assert isinstance(found, Test)
    return found
