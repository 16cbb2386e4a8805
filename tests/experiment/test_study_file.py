from __future__ import annotations

import os
from pathlib import Path

import pytest

from ensign.experiment.study_file import parse_study, read_study
from ensign.model.errors import InputError, StudyError

STUDY = """\
name = "demo"

[source]
kind = "path"
path = "."

[build]
commands = [["make", "CC={cc}", "CFLAGS={cflags}", "LDFLAGS={ldflags}"]]
artifact = "demo"
tools = { load-it = "load" }

[axes]
compiler = ["gcc-12", "clang-19"]
optimization = ["-O2", "-O3"]

[baseline]
compiler = "gcc-12"
optimization = "-O2"

[server]
command = ["{artifact}", "{port}"]

[[workloads]]
name = "get"
preload = [["{load-it}", "{port}"]]
load = ["{load-it}", "{port}",
    "{requests}"]
"""
_LEARN = """\
[[training.workloads]]
name = "t"
load = ["{load-it}", "{port}", "{requests}"]
"""


def errors_of(text: str, cpus: frozenset[int] | None = None) -> list[str]:
    with pytest.raises(StudyError) as caught:
        parse_study(text, Path("s.toml"), machine_cpus=cpus)
    return str(caught.value).split("\n")


def changed(*changes: tuple[str, str]) -> list[str]:
    text = STUDY
    for old, new in changes:
        assert text.count(old) >= 1, old
        text = text.replace(old, new, 1)
    return errors_of(text, frozenset({0, 1}))


@pytest.mark.parametrize(
    ("source", "axis", "expected"),
    [
        ('kind = "path"\npath = "."', 'revision = ["a"]', """kind = "git" and url = ".\""""),
        ('kind = "git"\nurl = "."\ncommit = "b"', 'revision = ["a"]', "leave out one"),
        ('kind = "git"\nurl = "."', 'revision = ["a", "a"]', "'a' is given twice"),
        ('kind = "git"\nurl = "."', 'revision = ["-a"]', "is not a commit, tag or branch"),
        ('kind = "git"\nurl = "."', 'revision = ["a\\u0007"]', "is not a commit, tag or branch"),
    ],
)
def test_revisions_are_those_of_git(source: str, axis: str, expected: str) -> None:
    said = changed(('kind = "path"\npath = "."', source), ("[axes]", f"[axes]\n{axis}"))
    assert expected in said[0]


@pytest.mark.parametrize(
    ("compilers", "more", "expected"),
    [
        ('["default", "gcc-12"]', "", "no other compiler beside it"),
        ('["default"]', 'lto = ["off", "full"]', "'lto' would say nothing"),
    ],
)
def test_flags_of_the_project_leave_nothing_to_vary(
    compilers: str, more: str, expected: str
) -> None:
    said = changed(('compiler = ["gcc-12", "clang-19"]', f"compiler = {compilers}\n{more}"))
    assert any(expected in each for each in said), said


def test_the_demo_is_right() -> None:
    file = parse_study(STUDY, Path("s.toml"), machine_cpus=frozenset({0}))
    assert file.study.name == "demo"
    assert [variant.name for variant in file.variants] == [
        "gcc-12-O2",
        "gcc-12-O3",
        "clang-19-O2",
        "clang-19-O3",
    ]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('path = "."', 'pth = "."', "s.toml:5: unknown key 'pth' in [source]; nearest is 'path'"),
        ('kind = "path"', "", "s.toml:3: key 'kind' is missing in [source]; one of: debian, path"),
        (
            'kind = "path"',
            'kind = "pth"',
            "s.toml:4: 'kind': 'pth' is not a kind of source; nearest is 'path'",
        ),
        ('artifact = "demo"', "", "s.toml:7: key 'artifact' is missing in [build]"),
        (
            "[[workloads]]",
            "[race]\nslce = 1\n[[workloads]]",
            "s.toml:24: unknown key 'slce' in [race]; nearest is 'slice'",
        ),
        (
            'name = "get"',
            'name = "get"\nprelaod = []',
            "s.toml:25: unknown key 'prelaod' in [[workloads]] number 1; nearest is 'preload'",
        ),
        ('name = "demo"', 'name = "My Demo"', "s.toml:1: 'name': 'My Demo' must be small letters"),
        ('["gcc-12",', '["gcc-12", "gcc-12",', "s.toml:13: 'compiler': 'gcc-12' is given twice"),
        ('"-O3"]', '"O3"]', "s.toml:14: 'optimization': 'O3' is not an optimization level"),
        ("{cc}", "{cx}", "s.toml:8: 'commands': placeholder {cx} is unknown; nearest is {cxx}"),
        (
            '    "{requests}"]',
            '    "{reqests}", "{requests}"]',
            "s.toml:27: 'load': placeholder {reqests} is unknown; nearest is {requests}",
        ),
        (
            "{load-it}",
            "{loadit}",
            "s.toml:25: 'preload': placeholder {loadit} is unknown; nearest is {load-it}",
        ),
        (
            '"{artifact}", "{port}"]',
            '"{artifact}", "{port}", "{cflags}"]',
            "s.toml:21: 'command': placeholder {cflags} is not known here; ",
        ),
        (
            'load = ["{load-it}", "{port}"',
            'load = ["{load-it}", "6379"',
            "s.toml:26: 'load' of workload 'get' has no {port}",
        ),
        (
            '    "{requests}"]',
            '    "5"]',
            "s.toml:26: 'load' of workload 'get' has no {requests} and there is no 'requests'",
        ),
        (
            '["-O2", "-O3"]',
            '["-O2", "-O3"]\nbolt = ["off", "on"]',
            "s.toml:15: 'bolt' needs a profile: add [[training.workloads]] to train it on",
        ),
        (
            "[[workloads]]",
            (
                '[training]\nruntime_files = ["lib"]\n'
                '[[training.workloads]]\nname = "t"\ncommand = ["{artifact}"]\n'
                '[[include]]\noptimization = "-O1"\nbolt = "on"\n[[workloads]]'
            ),
            "s.toml:24: with BOLT, files for training must be in 'build.runtime_files'",
        ),
        (
            "[server]",
            '[[include]]\noptimization = "-O1"\npgo = "on"\n[server]',
            "s.toml:22: 'pgo' needs a profile: add [[training.workloads]] to train it on",
        ),
        (
            "[[workloads]]",
            f"{_LEARN}[[workloads]]",
            "s.toml:23: training workload 't' uses {requests}: add 'requests'",
        ),
        (
            "[[workloads]]",
            '[[training.workloads]]\nname = "t"\ncommand = ["true"]\n[[workloads]]',
            "s.toml:25: 'command' of workload 't' has no {artifact}",
        ),
        (
            '"{artifact}", "{port}"]',
            '"{artifact}"]',
            "s.toml:21: 'command' has no {port} to become ready on",
        ),
        ('"{artifact}", "{port}"]', '"demo", "{port}"]', "s.toml:21: 'command' has no {artifact}"),
        (
            'compiler = "gcc-12"',
            'compiler = "gcc-13"',
            "s.toml:17: [baseline] matches no variant: 'compiler' is never 'gcc-13'; nearest is",
        ),
        (
            'optimization = "-O2"\n',
            "",
            "s.toml:16: [baseline] matches 2 variants (gcc-12-O2, gcc-12-O3); say its 'optimiz",
        ),
        (
            "[baseline]",
            '[[exclude]]\noptimization = "-O1"\n[baseline]',
            "s.toml:17: [[exclude]] matches no variant: 'optimization' is never '-O1'",
        ),
        (
            "[baseline]",
            "[[exclude]]\n[baseline]",
            "s.toml:16: [[exclude]] names no axis",
        ),
        (
            "[baseline]",
            '[[include]]\ncompiler = "gcc-12"\n[baseline]',
            "s.toml:16: [[include]] adds gcc-12 -O2, which is a variant already",
        ),
        (
            "load-it =",
            "port =",
            "s.toml:10: 'port' cannot be a tool's name: {port} means something else",
        ),
        ('artifact = "demo"', 'artifact = "/bin/x"', "s.toml:9: 'artifact': '/bin/x' must be a"),
        (
            'load = ["{load-it}"',
            'command = ["{load-it}"',
            "s.toml:25: 'preload' of workload 'get' is",
        ),
    ],
)
def test_one_mistake_is_one_line_with_its_place(old: str, new: str, expected: str) -> None:
    lines = changed((old, new))
    assert lines[0].startswith(expected), lines


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('budget = "0s"', "'budget': '0s' must be above 0"),
        ("budget = 0", "'budget': 0 is not a text in quotes"),
        ('budget = "-5m"', "'budget': '-5m' must be above 0"),
        ('budget = "5"', "'budget': '5' is not a time; write it with a unit"),
        ('margin = "0%"', "'margin': '0%' must be above 0% and below 100%"),
        ("rounds = 2", "'rounds': 2 must be at least 3"),
        ("rounds = true", "'rounds': true is not a whole number"),
        ('slice = "1us"', "'slice': '1us' must be at least 100us"),
        ("seed = -1", "'seed': -1 must be at least 0"),
        ('mode = "interleavd"', "'mode': 'interleavd' is not valid; nearest is 'interleaved'"),
        ("level = 0.5", "'level': '0.5' must be one of 0.9, 0.95, 0.975, 0.99"),
        ("ports = [5, 6]", "'ports': '[5, 6]' must be a first and a last port"),
        ("ports = [20000, 20001]", "'ports': '[20000, 20001]' must span at least 100 ports"),
    ],
)
def test_values_of_race(line: str, expected: str) -> None:
    errors = errors_of(f"{STUDY}\n[race]\n{line}\n")
    assert len(errors) == 1
    assert errors[0].startswith(f"s.toml:30: {expected}")


def test_a_margin_of_none_is_no_margin() -> None:
    file = parse_study(f'{STUDY}\n[race]\nmargin = "none"\n', Path("s.toml"))
    assert file.study.race.margin is None


@pytest.mark.parametrize("variants", ["none", "baseline"])
def test_robust_builds_are_chosen_among_relinks_that_are_raced(variants: str) -> None:
    race = '[race]\nprefer = "robust"\n'
    (line,) = errors_of(f'{STUDY}\n{race}[layouts]\nvariants = "{variants}"\n')
    assert line.startswith("s.toml:30: 'prefer': a robust build is chosen by its relinks")
    file = parse_study(f"{STUDY}\n{race}", Path("s.toml"))
    assert file.study.race.prefer == "robust"


def test_a_misspelt_key_is_not_reported_as_missing_too() -> None:
    assert len(changed(('artifact = "demo"', 'artefact = "demo"'))) == 1


def test_duplicate_workloads_are_named_at_the_second() -> None:
    lines = errors_of(STUDY + STUDY[STUDY.index("[[workloads]]") :])
    assert lines == ["s.toml:29: 'name': two workloads are called 'get'"]


def test_cpus_are_checked_against_the_machine_only_when_it_is_known() -> None:
    text = f"{STUDY}\n[cpus]\nserver = [1]\nload = [0, 7]\n"
    assert errors_of(text, frozenset({0, 1})) == [
        "s.toml:31: 'load': CPU 7 is not on this machine, which has CPUs 0, 1"
    ]
    assert parse_study(text, Path("s.toml")).study.cpus.load == [0, 7]


def test_a_load_without_a_server_and_a_workload_without_anything() -> None:
    server = '[server]\ncommand = ["{artifact}", "{port}"]\n'
    assert "there is no [server]" in errors_of(STUDY.replace(server, ""))[0]
    lines = errors_of(f'{STUDY}\n[[workloads]]\nname = "idle"\n')
    text = "workload 'idle' needs exactly one of 'load', 'drive', 'command' and 'ends'"
    assert lines == [f"s.toml:29: {text}"]


def test_mistakes_come_in_the_order_of_the_file_and_at_most_ten() -> None:
    wrong = "\n".join(f"wrong{number} = 1" for number in range(20))
    lines = errors_of(f"{STUDY}\n[race]\n{wrong}\n")
    assert len(lines) == 10
    assert [line.split(":")[1] for line in lines[:9]] == [str(30 + n) for n in range(9)]
    assert lines[9] == "s.toml: … and 11 more"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("name = \n", "s.toml:1: not TOML: Invalid value, column 8"),
        ("a = 1\nb = [1,\n", "s.toml:2: not TOML: Invalid value, at the end of the file"),
        ("a = 1\na = 2\n", "s.toml:2: not TOML: Cannot overwrite a value, column 6"),
    ],
)
def test_not_toml(text: str, expected: str) -> None:
    assert errors_of(text) == [expected]


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "quick.toml").write_text(STUDY)
    (tmp_path / "empty.toml").write_text("\n")
    (tmp_path / "latin.toml").write_bytes(b"a = 1\nb = '\xe9'\n")
    expected = {
        "quik.toml": "there is no such file; nearby: empty.toml, latin.toml, quick.toml",
        ".": "is a folder; name a file in it; nearby: empty.toml, latin.toml, quick.toml",
        "empty.toml": "is empty",
        "latin.toml": "is not UTF-8 text (line 2); save it as UTF-8",
    }
    for name, text in expected.items():
        with pytest.raises(StudyError) as caught:
            read_study(tmp_path / name)
        assert str(caught.value) == f"{tmp_path / name}: {text}"


def test_a_byte_order_mark_and_carriage_returns_change_nothing(tmp_path: Path) -> None:
    path = tmp_path / "windows.toml"
    path.write_bytes(b"\xef\xbb\xbf" + STUDY.replace("\n", "\r\n").encode())
    file = read_study(path)
    assert file.study == parse_study(STUDY, path).study
    assert file.error("late", "axes", "compiler").line == 13
    assert file.folder == tmp_path


def test_the_shipped_studies_are_right() -> None:
    root = Path(__file__).parents[2]
    files = sorted((root / "studies").rglob("*.toml"))
    assert files
    for path in files:
        assert read_study(path).variants, path


def test_the_quick_redis_study() -> None:
    path = Path(os.path.relpath(Path(__file__).parents[2] / "studies/redis/quick.toml"))
    file = read_study(path)
    assert [variant.name for variant in file.variants] == [
        "gcc-12-O2",
        "gcc-12-O3",
        "gcc-12-O3-lto",
        "clang-19-O2",
        "clang-19-O3",
        "clang-19-O3-lto",
        "clang-19-O3-lto-pgo-bolt",
    ]
    names = [workload.name for workload in file.study.workloads]
    assert {"set", "get", "incr", "lpush", "rpush", "lpop", "sadd", "hset", "zadd"} <= set(names)
    for workload in file.study.workloads:
        assert workload.drive is not None
        assert all(command.reply is not None for command in workload.drive.commands)
        assert workload.rounding % workload.drive.pipeline == 0


def test_significant_workloads_are_kept_alone_with_their_checks() -> None:
    text = STUDY.replace("[server]", '[race]\nslice_check = ["get", "put"]\n\n[server]')
    text += '\n[[workloads]]\nname = "put"\nload = ["{load-it}", "{port}", "{requests}"]\n'
    file = parse_study(text, Path("demo.toml"))
    assert file.with_workloads([]) == file
    chosen = file.with_workloads(["put"]).study
    assert [workload.name for workload in chosen.workloads] == ["put"]
    assert chosen.race.slice_check == ["put"]
    with pytest.raises(InputError, match="no workload called 'gte'; nearest is 'get'"):
        file.with_workloads(["put", "gte"])


CHECKED = """
[check]
commands = [["./test", "{artifact}", "{tmp}", "{jobs}", "{load-it}"]]
"""
BATCH = '\n[[workloads]]\nname = "solve"\ncommand = ["{artifact}", "--fast"]\n'


def test_a_check_names_commands_and_workloads() -> None:
    text = STUDY + BATCH + CHECKED + 'same_output = ["solve"]\ntolerance = 1e-6\n'
    file = parse_study(text, Path("s.toml"))
    assert file.study.check is not None
    assert file.with_workloads(["solve"]).study.check == file.study.check
    without = file.with_workloads(["get"]).study.check
    assert without is not None
    assert without.same_output == []


def test_a_check_of_output_alone_goes_with_its_workloads() -> None:
    text = STUDY + BATCH + '[check]\nsame_output = ["solve"]\n'
    check = parse_study(text, Path("s.toml")).with_workloads(["get"]).study.check
    assert check is not None
    assert check.same_output == []


@pytest.mark.parametrize(
    ("check", "said"),
    [
        ('same_output = ["solv"]', "no workload is called 'solv'; nearest is 'solve'"),
        ('same_output = ["get"]', "workload 'get' has no 'command', so it has no output"),
        ('same_output = ["solve", "solve"]', "'solve' is given twice"),
        ('same_output = ["told"]', "workload 'told' uses {port} or {variant}"),
        ('commands = [["./test", "{port}"]]', "placeholder {port} is not known here"),
        ('commands = [["./test", "{artefact}"]]', "{artefact} is unknown; nearest is {artifact}"),
        ("in_build_tree = true", "'in_build_tree' is for 'commands'"),
        ('commands = [["a"]]\nsame_output = []\ntolerance = 0.1', "'tolerance' is for the numbers"),
    ],
)
def test_mistakes_of_a_check_have_their_line(check: str, said: str) -> None:
    text = STUDY + BATCH + BATCH.replace('"solve"', '"told"').replace("--fast", "{port}")
    lines = (text + "\n[check]\n" + check + "\n").split("\n")
    [error] = errors_of("\n".join(lines))
    assert said in error
    number = int(error.split(":")[1])
    assert lines[number - 1].startswith(("[check]", *check.split("\n")))


_EDIT = """\
[ship]
commands = [["make", "CC={cc}"]]
[[ship.edits]]
file = "Makefile"
line = "O = -O2"
replace = "O = {cflags} ${NAME}"
"""


def test_flags_in_the_environment_of_a_build_are_sent_to_its_commands() -> None:
    text = STUDY.replace("[build]\n", '[build]\nenv.CFLAGS = "{cflags} -g"\n', 1)
    (error,) = errors_of(text)
    assert "placeholder {cflags} is not known here" in error
    assert error.endswith('begin commands of build.commands with "env", "CFLAGS={cflags} -g"')


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("{cflags}", "{cflag}", "s.toml:33: 'replace': placeholder {cflag} is unknown"),
        ("{cc}", "{cflags}", "s.toml:29: 'commands': placeholder {cflags} is not known here"),
        ('line = "O = -O2"\n', "", "s.toml:30: an edit needs exactly one of 'line' and 'pattern'"),
        ('line = "O', 'create = true\nline = "O', "s.toml:30: an edit with 'create' makes a file"),
        ("{cflags} ${NAME}", "$env{HOME} {flags_list}", "s.toml:33: 'replace': placeholder {flags"),
        ('line = "O', 'pattern = "(O', "s.toml:32: 'pattern' is not a regular expression: missing"),
        ('"Makefile"', '"../Makefile"', "s.toml:31: 'file': '../Makefile' must be a path inside"),
    ],
)
def test_mistakes_in_ship_are_one_line(old: str, new: str, expected: str) -> None:
    parse_study(STUDY + _EDIT, Path("s.toml"))
    (line,) = errors_of(STUDY + _EDIT.replace(old, new, 1))
    assert line.startswith(expected)
