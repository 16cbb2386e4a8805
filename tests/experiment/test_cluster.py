"""Dealing work to a cluster: what is submitted, taken up again, and given up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from ensign.experiment.cluster.coordinate import Coordinator, TaskListener, TaskView, Times
from ensign.experiment.cluster.decide import (
    MOST_ATTEMPTS,
    SETTLE_S,
    Seen,
    TaskState,
    may_submit,
    stepped,
    submitted,
)
from ensign.experiment.cluster.jobs import Job, JobState, Submission, Task
from ensign.experiment.cluster.task_files import (
    End,
    JobLine,
    JobProgress,
    Phase,
    TaskFiles,
    TaskOutcome,
)
from ensign.experiment.cluster.tasks import require_free_nodes
from ensign.model.cluster import Cluster, HostSlot
from ensign.model.errors import ClusterUnreachable, InputError
from ensign.store.folder import StudyFolder
from simulated_cluster import ASKED, SimulatedCluster, asked_anew, build, race


class Told(TaskListener):
    def __init__(self) -> None:
        self.said: list[str] = []

    def unreachable(self, why: str) -> None:
        self.said.append(why)


@pytest.fixture
def files(tmp_path: Path) -> TaskFiles:
    return TaskFiles(StudyFolder(tmp_path / "s"))


def coordinator(cluster: SimulatedCluster, tasks: Sequence[Task]) -> Coordinator:
    times = Times(cluster.time, cluster.wait, patience_s=100.0)
    return Coordinator(tasks, cluster, cluster.files, times, Told())


def ends(views: Sequence[TaskView]) -> dict[str, End | None]:
    return {view.task.name: view.state.end for view in views}


def names(cluster: SimulatedCluster) -> list[str]:
    return [each.task.name for each in cluster.submissions]


TASKS = (build(1), race(1), race(2))


def test_builds_come_before_races(files: TaskFiles) -> None:
    cluster = SimulatedCluster(files)
    found = coordinator(cluster, TASKS).run()
    assert names(cluster) == ["build-1", "milan-1", "milan-2"]
    assert set(ends(found).values()) == {End.DONE}
    assert cluster.given[2].ends_s == cluster.given[3].ends_s, "both hosts at once"


def test_what_is_done_is_not_done_again(files: TaskFiles) -> None:
    coordinator(SimulatedCluster(files), TASKS).run()
    again = SimulatedCluster(files)
    coordinator(again, TASKS).run()
    assert again.submissions == []
    other = SimulatedCluster(files)
    coordinator(other, [asked_anew(task) for task in TASKS]).run()
    assert len(other.submissions) == 3


@pytest.mark.parametrize("word", ["CANCELLED", "FAILED", "TIMEOUT", "OUT_OF_MEMORY", "NODE_FAIL"])
def test_a_job_that_ends_before_its_time_is_followed_by_another(
    files: TaskFiles, word: str
) -> None:
    cluster = SimulatedCluster(files, ends={"milan-1": [word, "AGAIN"]})
    found = coordinator(cluster, TASKS).run()
    assert names(cluster).count("milan-1") == 3
    assert set(ends(found).values()) == {End.DONE}
    said = [line.said for line in files.lines("milan-1")]
    assert said == [f"ended by: {word}", "ended by: the disk is full"]


def test_a_host_whose_jobs_get_no_further_is_given_up(files: TaskFiles) -> None:
    cluster = SimulatedCluster(files, ends={"milan-2": ["TIMEOUT"] * 9})
    found = coordinator(cluster, TASKS).run()
    assert ends(found) == {"build-1": End.DONE, "milan-1": End.DONE, "milan-2": End.FAILED}
    assert names(cluster).count("milan-2") == MOST_ATTEMPTS
    why = found[-1].state.why
    assert why == "4 jobs in a row got no further; the last one ended by: TIMEOUT"
    again = SimulatedCluster(files)
    assert ends(coordinator(again, TASKS).run())["milan-2"] is End.DONE


def test_what_the_cluster_does_of_its_own_accord_is_no_failure(files: TaskFiles) -> None:
    words = ["PREEMPTED", "NODE_FAIL"] * MOST_ATTEMPTS
    cluster = SimulatedCluster(files, ends={"milan-1": words})
    assert ends(coordinator(cluster, TASKS).run())["milan-1"] is End.DONE


def test_a_task_that_cannot_be_done_is_not_tried_again(files: TaskFiles) -> None:
    cluster = SimulatedCluster(files, ends={"milan-1": ["FAILED_ITSELF"]})
    found = coordinator(cluster, TASKS).run()
    assert names(cluster).count("milan-1") == 1
    assert (found[1].state.end, found[1].state.why) == (End.FAILED, "the disk is full")


def test_a_coordinator_takes_over_the_jobs_of_one_that_was_killed(files: TaskFiles) -> None:
    cluster = SimulatedCluster(files)
    killed = coordinator(cluster, TASKS)
    killed.times = replace(killed.times, wait_s=_killed)
    with pytest.raises(KeyboardInterrupt):
        killed.run()
    coordinator(cluster, TASKS).run()
    assert names(cluster) == ["build-1", "milan-1", "milan-2"]


def _killed(_: float) -> None:
    raise KeyboardInterrupt


def test_a_controller_that_does_not_answer_is_asked_again(files: TaskFiles) -> None:
    cluster = SimulatedCluster(files)
    one = coordinator(cluster, TASKS)
    waits: list[float] = []

    def wait(seconds: float) -> None:
        cluster.wait(seconds)
        waits.append(seconds)
        cluster.is_down = 3 < len(waits) < 9

    one.times = replace(one.times, wait_s=wait)
    assert set(ends(one.run()).values()) == {End.DONE}
    assert isinstance(one.listener, Told)
    assert len(one.listener.said) == 5


def test_a_job_that_the_cluster_refuses_is_given_up_with_its_words(files: TaskFiles) -> None:
    cluster = SimulatedCluster(files)
    submit = cluster.submit

    def refusing(submission: Submission) -> str:
        if submission.task.name == "milan-1":
            raise ClusterUnreachable("not submitted: invalid partition specified: benc")
        return submit(submission)

    cluster.submit = refusing  # type: ignore[method-assign]
    found = coordinator(cluster, TASKS).run()
    assert ends(found) == {"build-1": End.DONE, "milan-1": End.FAILED, "milan-2": End.DONE}
    assert found[1].state.why.endswith("invalid partition specified: benc")
    assert cluster.now_s < 120


def test_hosts_that_nobody_names_get_different_nodes(files: TaskFiles) -> None:
    cluster = SimulatedCluster(files, nodes=("n1",))
    tasks = (build(1), race(1), race(2))
    cluster.ends = {"milan-2": ["CANCELLED"]}
    one = coordinator(cluster, tasks)
    one.times = replace(one.times, wait_s=lambda s: _add_node(cluster, s))
    one.run()
    last = cluster.submissions[-1]
    assert (last.task.name, last.node, last.without) == ("milan-2", "", ("n1",))
    assert files.nodes() == {"milan-1": "n1", "milan-2": "n2"}


def _add_node(cluster: SimulatedCluster, seconds: float) -> None:
    cluster.wait(seconds)
    if cluster.now_s > 60:
        cluster.nodes = ("n1", "n2")


def test_a_host_goes_on_where_it_was(files: TaskFiles) -> None:
    files.take_node("milan-1", "n2")
    cluster = SimulatedCluster(files)
    coordinator(cluster, (race(1),)).run()
    assert cluster.submissions[0].node == "n2"


def test_a_node_belongs_to_one_task(files: TaskFiles) -> None:
    assert files.take_node("milan-1", "n1")
    assert files.take_node("milan-1", "n1")
    assert not files.take_node("milan-2", "n1")
    assert not files.take_node("milan-1", "n2"), "it has one already"
    assert files.take_node("milan-2", "n2")


def test_jobs_are_cancelled_by_the_names_of_tasks(files: TaskFiles) -> None:
    cluster = SimulatedCluster(files)
    one = coordinator(cluster, (race(1), race(2)))
    one.times = replace(one.times, wait_s=_killed)
    with pytest.raises(KeyboardInterrupt):
        one.run()
    assert coordinator(cluster, (race(1), race(2))).cancel() == 2
    assert sorted(cluster.cancelled) == ["1", "2"]


QUEUED = Job("7", "milan-1", JobState.QUEUED, "PENDING")
ENDED = Job("7", "milan-1", JobState.ENDED, "TIMEOUT")
OURS = submitted(TaskState(), "7", trials=3)
WAITING = JobProgress("7", Phase.WAITING, "waits for process 3")


def test_word_of_a_job_may_come_late() -> None:
    """What a job wrote last is seen on another node a while after it has gone."""
    state = stepped(OURS, Seen(ENDED, None, None, 3), ASKED, 100.0)
    assert (state.end, state.lost) == (None, ())
    late = TaskOutcome("7", End.DONE, ASKED)
    assert stepped(state, Seen(ENDED, late, None, 3), ASKED, 103.0).end is End.DONE
    lost = stepped(state, Seen(ENDED, None, None, 3), ASKED, 100.0 + SETTLE_S)
    assert lost.lost == (("7", "TIMEOUT"),)
    assert may_submit(lost, 200.0)


def test_time_in_which_another_race_had_the_machine_is_not_the_jobs() -> None:
    state = OURS
    for progress, attempts in ((WAITING, 0), (replace(WAITING, phase=Phase.RACING), 1)):
        first = stepped(state, Seen(ENDED, None, progress, 3), ASKED, 100.0)
        assert stepped(first, Seen(ENDED, None, progress, 3), ASKED, 200.0).attempts == attempts


def test_a_job_that_measured_something_is_no_failure() -> None:
    state = replace(OURS, attempts=MOST_ATTEMPTS - 1)
    first = stepped(state, Seen(ENDED, None, None, 4), ASKED, 100.0)
    second = stepped(first, Seen(ENDED, None, None, 4), ASKED, 200.0)
    assert (second.attempts, second.end) == (0, None)


def test_word_of_what_else_was_asked_is_none() -> None:
    other = TaskOutcome("6", End.DONE, "something else")
    assert stepped(TaskState(), Seen(None, other, None), ASKED, 0.0).end is None


def test_a_node_that_stays_down_is_given_up_when_all_others_have_ended(files: TaskFiles) -> None:
    cluster = SimulatedCluster(files, nodes=("n1",))
    shown = cluster.jobs

    def jobs() -> dict[str, Job]:
        return {
            name: replace(job, reason="ReqNodeNotAvail, UnavailableNodes:n2")
            if job.state is JobState.QUEUED
            else job
            for name, job in shown().items()
        }

    cluster.jobs = jobs  # type: ignore[method-assign]
    found = coordinator(cluster, (build(1), race(1, node="n1"), race(2, node="n2"))).run()
    assert ends(found) == {"build-1": End.DONE, "milan-1": End.DONE, "milan-2": End.FAILED}
    assert "ReqNodeNotAvail" in found[-1].state.why
    assert cluster.cancelled == ["3"]


def test_half_a_line_and_damaged_words_are_none(files: TaskFiles) -> None:
    files.add_line("t", JobLine("1", "n1"))
    path = files.folder.root / "tasks" / "t.jobs"
    path.write_bytes(path.read_bytes() + b'{"job": "2", "no')
    assert list(files.lines("t")) == [JobLine("1", "n1")]
    files.end("t", TaskOutcome("1", End.DONE, ASKED))
    (files.folder.root / "tasks" / "t.outcome.json").write_text("{")
    assert files.outcome("t") is None


def test_work_of_the_coordinator_grows_with_the_jobs(files: TaskFiles) -> None:
    """Each task's files are read a few times, however many others there are."""
    read: dict[int, float] = {}
    for count in (30, 120):
        own = TaskFiles(StudyFolder(files.folder.root / str(count)))
        seen = own.outcome
        calls: list[str] = []
        own.outcome = lambda task, seen=seen, calls=calls: calls.append(task) or seen(task)  # type: ignore[method-assign,misc]
        cluster = SimulatedCluster(own, tuple(f"n{n}" for n in range(10)))
        tasks = [race(number) for number in range(count)]
        cluster.nodes = tuple(f"n{number}" for number in range(count))
        coordinator(cluster, tasks).run()
        read[count] = len(calls) / count
    assert read[120] < 1.5 * read[30]


def test_hosts_are_called_by_their_nodes_or_by_their_kind() -> None:
    hosts = {"milan": {"nodes": ["n1", "n2"]}, "genoa": {"count": 2}}
    cluster = Cluster.model_validate({"hosts": hosts})
    assert [(slot.name, slot.kind, slot.node) for slot in cluster.slots] == [
        ("n1", "milan", "n1"), ("n2", "milan", "n2"), ("genoa-1", "genoa", ""),
        ("genoa-2", "genoa", ""),
    ]  # fmt: skip


def test_a_node_does_not_race_as_two_hosts(files: TaskFiles) -> None:
    files.take_node("genoa-1", "n1")
    both = [HostSlot("n1", "milan", "n1"), HostSlot("genoa-1", "genoa", "")]
    with pytest.raises(InputError, match="node n1 has raced as genoa-1 already"):
        require_free_nodes(both, files)
    require_free_nodes(both[:1], files)
    assert files.take_node("n1", "n1"), "genoa-1 is no host of the study any more"
