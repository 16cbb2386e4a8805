"""Runs a program of pyperformance a fixed number of times: `python program.py ARCHIVE NAME LOOPS`.

It stands in for the module pyperf, whose processes, calibration and clocks ensign needs not: the race measures.
"""

import sys
import zipimport


class Options:
    """The options that programs have: each keeps its default."""

    def add_argument(self, *names, default=None, dest=None, action=None, **_):
        name = dest or next((each for each in names if each.startswith("--")), names[0])
        setattr(self, name.lstrip("-").replace("-", "_"), False if action == "store_true" else default)


class Runner:
    loops = 1

    def __init__(self, **_):
        self.metadata = {}
        self.argparser = Options()
        self.args = None

    def parse_args(self):
        return self.argparser

    def bench_func(self, _name, function, *args, **_):
        for _ in range(self.loops):
            function(*args)

    def bench_time_func(self, _name, function, *args, **_):
        function(self.loops, *args)


class Pyperf:
    Runner = Runner

    @staticmethod
    def perf_counter():
        return 0.0


archive, name, loops = sys.argv[1:]
del sys.argv[1:]
Runner.loops = int(loops)
sys.modules["pyperf"] = Pyperf
exec(zipimport.zipimporter(archive).get_code(name), {"__name__": "__main__"})
