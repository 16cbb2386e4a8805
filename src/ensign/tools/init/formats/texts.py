"""Formats of text: data, documents, source code, sequences. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from ensign.tools.init.formats.format import Format, lines, numbers, prose, ratio, words

_XML = '<?xml version="1.0" encoding="UTF-8"?>\n'


def text_formats() -> Iterator[Format]:
    """Those that people could read."""
    yield Format(("txt", "text", "plain text"), lines(prose))
    yield Format(("json",), _json)
    yield Format(
        ("xml",),
        lines(
            lambda at, n: f'<item id="{at}"><name>{words(2, n)}</name><v>{n}</v></item>\n',
            f"{_XML}<items>\n",
            "</items>\n",
        ),
    )
    yield Format(
        ("html", "htm", "xhtml"),
        lines(
            lambda at, n: f'<p id="p{at}">{words(12, n)} <a href="#p{n % 100}">{at}</a></p>\n',
            "<!DOCTYPE html>\n<html><head><title>Made</title></head><body>\n",
            "</body></html>\n",
        ),
    )
    yield Format(
        ("svg",),
        lines(
            lambda at, n: (
                f'<path d="M{n % 500} {at % 500} L{n % 300} {n % 200} C10 20 30 40 50 {n % 90}" '
                'fill="#abc" stroke="#123"/>\n'
            ),
            f'{_XML}<svg xmlns="http://www.w3.org/2000/svg" width="500" height="500">\n',
            "</svg>\n",
        ),
    )
    yield Format(
        ("plist",),
        lines(_plist, f'{_XML}<plist version="1.0"><array>\n', "</array></plist>\n"),
    )
    yield Format(
        ("csv", "comma-separated"),
        lines(lambda at, n: f"{at},{words(1, n)},{ratio(n):.6f},{n % 1000}\n", "id,name,x,y\n"),
    )
    yield Format(
        ("tsv", "tab-separated"),
        lines(
            lambda at, n: f"{at}\t{words(1, n)}\t{ratio(n):.6f}\t{n % 1000}\n", "id\tname\tx\ty\n"
        ),
    )
    yield Format(
        ("yaml", "yml"),
        lines(lambda at, n: f"- id: {at}\n  name: {words(2, n)}\n  value: {ratio(n):.6f}\n"),
    )
    yield Format(
        ("toml",),
        lines(lambda at, n: f'[[item]]\nid = {at}\nname = "{words(2, n)}"\nvalue = {n}\n\n'),
    )
    yield Format(
        ("ini", "conf"),
        lines(lambda at, n: f"[section{at}]\nname = {words(2, n)}\nvalue = {n}\n\n"),
    )
    yield Format(("md", "markdown"), lines(_markdown), 300)
    yield Format(("c", "cpp", "c source"), lines(_code), 500)
    yield Format(
        ("sql",),
        lines(
            lambda at, n: f"INSERT INTO items VALUES ({at}, '{words(2, n)}', {ratio(n):.6f});\n",  # noqa: S608  # data
            "CREATE TABLE items (id INTEGER, name TEXT, value REAL);\n",
        ),
    )
    yield Format(
        ("dot", "gv", "graphviz"),
        lines(
            lambda at, n: f'  n{at} -> n{n % (at + 1)} [label="{n % 9}"];\n', "digraph {\n", "}\n"
        ),
    )
    yield Format(
        ("diff", "patch", "unified diff"),
        lines(
            lambda at, n: (
                f"--- a/{at}.txt\n+++ b/{at}.txt\n@@ -1,2 +1,2 @@\n {words(4, at)}\n"
                f"-{words(4, n)}\n+{words(4, n + 1)}\n"
            )
        ),
        300,
    )
    yield Format(
        ("bib", "bibtex"),
        lines(
            lambda at, n: (
                f"@article{{key{at},\n  author = {{{words(2, n).title()}}},\n"
                f"  title = {{{words(6, n)}}},\n  year = {{{1950 + n % 70}}}\n}}\n\n"
            )
        ),
    )
    yield Format(
        ("po", "gettext"),
        lines(
            lambda at, n: f'msgid "{at} {words(4, n)}"\nmsgstr "{words(4, n + 1)}"\n\n',
            'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\n',
        ),
    )
    yield Format(
        ("dat", "columns", "data file"),
        lines(lambda at, n: f"{at} {ratio(n):.6f} {ratio(n * 7 % 2**31):.6f}\n"),
    )
    yield Format(
        ("fasta", "fa"), lines(lambda at, n: f">seq{at} {words(2, n)}\n{_bases(n, 80)}\n"), 500
    )
    yield Format(("fastq", "fq"), lines(_read), 300)
    yield Format(("sam",), lines(_aligned, "@HD\tVN:1.6\n@SQ\tSN:chr1\tLN:1000000\n"), 300)
    yield Format(
        ("bed",),
        lines(lambda at, n: f"chr1\t{at * 100}\t{at * 100 + n % 90 + 1}\tr{at}\t{n % 1000}\n"),
    )
    yield Format(
        ("pdb", "protein"),
        lines(
            lambda at, n: (
                f"ATOM  {at % 99999 + 1:5d}  CA  ALA A{at % 9999 + 1:4d}    {n % 900 / 10:8.3f}"
                f"{n % 700 / 10:8.3f}{n % 500 / 10:8.3f}  1.00  0.00           C\n"
            ),
            foot="END\n",
        ),
    )
    yield Format(("eml", "mbox", "mail message"), lines(_mail), 200)
    yield Format(("srt", "subtitles"), lines(_subtitle), 500)
    yield Format(
        ("ics", "icalendar"),
        lines(
            lambda at, n: (
                f"BEGIN:VEVENT\r\nUID:{at}@made\r\nDTSTAMP:20200101T000000Z\r\n"
                f"DTSTART:202001{n % 28 + 1:02}T{n % 24:02}0000Z\r\nSUMMARY:{words(4, n)}\r\n"
                "END:VEVENT\r\n"
            ),
            "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:made\r\n",
            "END:VCALENDAR\r\n",
        ),
    )
    yield Format(
        ("tex", "latex"),
        lines(
            lambda at, n: (
                f"\\section{{{words(3, n).title()}}}\n{words(30, n)} $x_{{{at}}}^2 + {n % 99}$ "
                f"\\emph{{{words(2, at)}}}.\n\n"
            ),
            "\\documentclass{article}\n\\begin{document}\n",
            "\\end{document}\n",
        ),
        300,
    )
    yield Format(
        ("proto", "protocol buffers", "protobuf"),
        lines(
            lambda at, n: (
                f"// {words(6, n)}\nmessage Item{at} {{\n  int32 id = 1;\n"
                f"  string {words(1, n)} = 2;\n  repeated double value = 3;\n}}\n\n"
            ),
            'syntax = "proto3";\n\n',
        ),
        500,
    )
    yield Format(
        ("rs", "rust source"),
        lines(
            lambda at, n: (
                f"/// {words(8, n)}\n#[repr(C)]\npub struct Item{at} {{\n    pub id: u32,\n"
                f'    pub value: f64,\n}}\n\n#[no_mangle]\npub extern "C" fn function_{at}('
                f"first: i32, second: i32) -> i32 {{\n    first.wrapping_mul({n % 97}) ^ second\n"
                "}\n\n"
            )
        ),
        500,
    )


def _json(records: int) -> bytes:
    items = ",\n".join(
        f'{{"id": {at}, "name": "{words(2, number)}", "value": {ratio(number):.6f}, '
        f'"tags": ["{words(1, number + 1)}", "{words(1, number + 2)}"], "ok": true}}'
        for at, number in enumerate(islice(numbers(), records))
    )
    return f"[\n{items}\n]\n".encode()


def _code(at: int, number: int) -> str:
    return (
        f"/* {words(8, number)} */\n"
        f"int function_{at}(int first, int second)\n{{\n"
        f"    if (first > {number % 1000})\n        return first * second + {number % 97};\n"
        f"    return second - {number % 89};\n}}\n\n"
    )


def _markdown(at: int, number: int) -> str:
    return (
        f"## {words(4, number).title()}\n\n{words(30, number)} *{words(2, at)}* and "
        f"`{words(1, at)}`.\n\n- {words(5, at)}\n- [{words(2, at)}](#{at})\n\n"
    )


def _plist(at: int, number: int) -> str:
    return (
        f"<dict><key>id</key><integer>{at}</integer><key>name</key>"
        f"<string>{words(3, number)}</string><key>value</key><real>{ratio(number):.6f}</real>"
        "</dict>\n"
    )


def _bases(number: int, count: int) -> str:
    return "".join("ACGT"[each % 4] for each in islice(numbers(number), count))


def _read(at: int, number: int) -> str:
    return f"@read{at}\n{_bases(number, 80)}\n+\n{'I' * 80}\n"


def _aligned(at: int, number: int) -> str:
    place = number % 900_000 + 1
    return f"read{at}\t0\tchr1\t{place}\t60\t80M\t*\t0\t0\t{_bases(number, 80)}\t{'I' * 80}\n"


def _mail(at: int, number: int) -> str:
    return (
        f"From a{at}@example.org Wed Jan  1 00:00:00 2020\nFrom: a{at}@example.org\n"
        f"To: b{number % 99}@example.org\nSubject: {words(5, number)}\n"
        f"Message-ID: <{at}.{number}@example.org>\nDate: Wed, 1 Jan 2020 00:00:00 +0000\n\n"
        f"{words(40, number).capitalize()}.\n\n"
    )


def _subtitle(at: int, number: int) -> str:
    minutes, seconds = divmod(at * 3, 60)
    time = f"{minutes // 60:02}:{minutes % 60:02}:{seconds:02}"
    return f"{at + 1}\n{time},000 --> {time},900\n{words(8, number)}\n\n"
