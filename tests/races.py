"""Canned records of a meter, for tests of what happens around a race."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field

from ensign.meter.client import Json, Verb


def execution(number: int, costs: dict[str, int], memory_bytes: int = 0) -> Iterator[Json]:
    """The records of one valid execution with those CPU times (ns) per variant."""
    for variant, cost in costs.items():
        yield {
            "type": "slice",
            "execution": number,
            "variant": variant,
            "start_ns": 0,
            "wall_ns": cost,
            "cpu_ns": cost,
        }
        yield {
            "type": "variant",
            "execution": number,
            "variant": variant,
            "wall_ns": cost,
            "cpu_ns": cost,
            "user_ns": cost,
            "system_ns": 0,
            "operations": 1,
            "slices": 1,
            "peak_memory_bytes": memory_bytes,
        }
    yield {
        "type": "execution",
        "execution": number,
        "wall_ns": sum(costs.values()),
        "started_unix_ns": 10**18,
        "running_share": 0.99,
        "valid": True,
    }


@dataclass
class SimulatedMeter:
    """Answers any race: `cost_ns(variant, execution)` for each variant; time passes as it would.

    `now_ns` is the clock that a test hands to the code under test; `besides_ns` passes with each
    race besides what the meter says of it.
    """

    cost_ns: Callable[[str, int], int]
    now_ns: int = 0
    requests: list[tuple[Verb, Json]] = field(default_factory=list)
    interrupt_after: int | None = None
    peak_memory_bytes: int = 0
    besides_ns: int = 0
    _executions: int = 0

    def run(self, verb: Verb, request: Json) -> Generator[Json]:
        """Records of as many executions as were asked for and fit into the budget."""
        self.requests.append((verb, request))
        yield {"type": "start", "schema": 1, "freezer": "cgroup", "mode": request["mode"]}
        self.now_ns += self.besides_ns
        names = [variant["name"] for variant in request["variants"]]  # type: ignore[attr-defined]
        begin_ns = self.now_ns
        for number in range(int(request["executions"])):  # type: ignore[call-overload]
            costs = {name: self.cost_ns(name, self._executions) for name in names}
            spent_ns = sum(costs.values())
            budget_ns = request["budget_ns"]
            if budget_ns is not None and self.now_ns + spent_ns - begin_ns > int(budget_ns):  # type: ignore[call-overload]
                break
            if self.interrupt_after is not None and self._executions >= self.interrupt_after:
                raise KeyboardInterrupt
            self.now_ns += spent_ns
            self._executions += 1
            yield from execution(number, costs, self.peak_memory_bytes)
        yield {"type": "end", "status": "complete", "executions": 0}

    def clock_ns(self) -> int:
        """The simulated time."""
        return self.now_ns

    def monotonic_ns(self) -> int:
        """The simulated time, as a `Clock`."""
        return self.now_ns

    def unix_s(self) -> float:
        """The simulated time, as a `Clock`."""
        return self.now_ns / 1e9
