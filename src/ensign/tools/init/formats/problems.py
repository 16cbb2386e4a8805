"""Formats of problems to be solved: linear programs, formulas, graphs. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

from ensign.tools.init.formats.format import Format, Make, numbers


def problem_formats() -> Iterator[Format]:
    """Those of solvers."""
    yield Format(("mps", "linear program"), _mps, 300)
    yield Format(("lp",), _lp, 300)
    yield Format(("cnf", "sat solver"), _cnf, 300)
    yield Format(("gr", "shortest path"), _arcs("sp", lambda _count: ""))
    yield Format(
        ("max", "maximum flow", "dimacs"), _arcs("max", lambda count: f"n 1 s\nn {count} t\n")
    )
    yield Format(("ltl", "temporal logic"), _temporal, 4)


def _partners(at: int, count: int) -> tuple[int, int, int]:
    return at, (at * 7 + 3) % count, (at * 13 + 5) % count


def _mps(count: int) -> bytes:
    """A linear program: the least cost of x ≥ 0, three of which cover each of so many demands."""
    covers: list[list[int]] = [[] for _ in range(count)]
    for row in range(count):
        for column in dict.fromkeys(_partners(row, count)):
            covers[column].append(row)
    costs = [number % 90 + 10 for number in islice(numbers(), count)]
    needs = [number % 50 + 1 for number in islice(numbers(2), count)]
    lines = ["NAME          COVER", "ROWS", " N  COST"]
    lines += [f" G  R{row}" for row in range(count)] + ["COLUMNS"]
    for column, rows in enumerate(covers):
        lines.append(f"    X{column:<8} COST      {costs[column]}")
        lines += [f"    X{column:<8} R{row:<8} 1" for row in rows]
    lines += ["RHS", *(f"    RHS       R{row:<8} {need}" for row, need in enumerate(needs))]
    return ("\n".join((*lines, "ENDATA")) + "\n").encode()


def _lp(count: int) -> bytes:
    """The linear program of `_mps` in CPLEX's format."""
    costs = (f"{number % 90 + 10} x{at}" for at, number in enumerate(islice(numbers(), count)))
    needs = (number % 50 + 1 for number in islice(numbers(2), count))
    sums = (
        " + ".join(f"x{each}" for each in dict.fromkeys(_partners(row, count)))
        for row in range(count)
    )
    rows = (
        f" r{row}: {each} >= {need}"
        for row, (each, need) in enumerate(zip(sums, needs, strict=True))
    )
    objective = "\n + ".join(costs)
    return "\n".join(("Minimize", f" cost: {objective}", "Subject To", *rows, "End", "")).encode()


def _cnf(count: int) -> bytes:
    """Clauses of three variables, 3.5 for each variable: few are hard."""
    drawn = numbers()
    clauses = int(count * 3.5)

    def literal() -> str:
        number = next(drawn)
        return str((number % count + 1) * (1 if number & (1 << 20) else -1))

    lines = (f"{literal()} {literal()} {literal()} 0" for _ in range(clauses))
    return "\n".join((f"p cnf {count} {clauses}", *lines, "")).encode()


def _arcs(kind: str, marks: Callable[[int], str]) -> Make:
    """A graph of DIMACS with four arcs for each node."""

    def make(count: int) -> bytes:
        ends = ((at, number) for at, number in enumerate(islice(numbers(), 4 * count)))
        arcs = (f"a {at // 4 + 1} {number % count + 1} {number % 99 + 1}" for at, number in ends)
        head = f"p {kind} {count} {4 * count}\n{marks(count)}"
        return (head + "\n".join(arcs) + "\n").encode()

    return make


def _temporal(count: int) -> bytes:
    """A formula of linear temporal logic, operators first: so many promises, each until the next.

    Automata of such formulas have states for each set of promises.
    """
    parts = [f"U p{at} p{at + 1}" for at in range(count)]
    return (" ".join(["&"] * (count - 1) + parts) + "\n").encode()
