"""Programs for interpreters, which work when they are run: functions that are called once. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from ensign.tools.init.formats.format import Format, lines, words

_TIMES = 2000
_PRIME = 65521


def program_formats() -> Iterator[Format]:
    """Those of common languages; each record sums up some thousand products modulo a prime."""
    # Awk ends without input where there are BEGIN blocks alone.
    yield Format(
        ("awk", "mawk", "gawk", "nawk"),
        lines(
            lambda at, n: (
                f"# {words(8, n)}\nfunction f{at}(a, i, s) {{\n"
                f"  for (i = 0; i < {_TIMES}; i++) s = (s * 31 + i + a) % {_PRIME}\n"
                f"  seen[s % 97] = s; return s\n}}\nBEGIN {{ total += f{at}({n % _PRIME}) }}\n"
            ),
            foot="BEGIN { print total }\n",
        ),
        100,
    )
    yield Format(
        ("lua",),
        lines(
            lambda at, n: (
                f"-- {words(8, n)}\nfunction f{at}(a)\n  local s, seen = 0, {{}}\n"
                f"  for i = 1, {_TIMES} do s = (s * 31 + i + a) % {_PRIME}; seen[s % 97] = s end\n"
                f"  return s\nend\ntotal = total + f{at}({n % _PRIME})\n"
            ),
            "total = 0\n",
            "print(total)\n",
        ),
        100,
    )
    yield Format(
        ("js", "javascript", "ecmascript"),
        lines(
            lambda at, n: (
                f"/* {words(8, n)} */\nfunction f{at}(a) {{\n  var s = 0, seen = [];\n"
                f"  for (var i = 0; i < {_TIMES}; i++) {{\n"
                f"    s = (s * 31 + i + a) % {_PRIME}; seen[s % 97] = s;\n  }}\n"
                f"  return s;\n}}\ntotal += f{at}({n % _PRIME});\n"
            ),
            "var total = 0;\n",
        ),
        100,
    )
    yield Format(
        ("py", "python"),
        lines(
            lambda at, n: (
                f"# {words(8, n)}\ndef function_{at}(first, seen):\n    result = 0\n"
                f"    for second in range({_TIMES // 10}):\n"
                f"        result = (result * 31 + second + first) % {_PRIME}\n"
                f"        seen[result % 97] = result\n    return result\n\n\n"
                f"function_{at}({n % _PRIME}, {{}})\n\n\n"
            )
        ),
        300,
    )
    yield Format(
        ("scm", "scheme"),
        lines(
            lambda at, n: (
                f"; {words(8, n)}\n(define (f{at} a)\n  (let loop ((i 0) (s a))\n"
                f"    (if (= i {_TIMES}) s\n"
                f"        (loop (+ i 1) (modulo (+ (* s 31) i a) {_PRIME})))))\n"
                f"(f{at} {n % _PRIME})\n"
            )
        ),
        100,
    )
    yield Format(
        ("tcl",),
        lines(
            lambda at, n: (
                f"# {words(8, n)}\nproc f{at} {{a}} {{\n  set s 0\n"
                f"  for {{set i 0}} {{$i < {_TIMES}}} {{incr i}} {{\n"
                f"    set s [expr {{($s * 31 + $i + $a) % {_PRIME}}}]\n  }}\n  return $s\n}}\n"
                f"f{at} {n % _PRIME}\n"
            )
        ),
        100,
    )
    yield Format(
        ("sh", "shell script", "shell"),
        lines(
            lambda at, n: (
                f"# {words(8, n)}\nf{at}() {{\n  i=0 s=0\n"
                f"  while [ $i -lt {_TIMES // 20} ]; do\n"
                f"    s=$(( (s * 31 + i + $1) % {_PRIME} )) i=$((i + 1))\n  done\n}}\n"
                f"f{at} {n % _PRIME}\n"
            )
        ),
        100,
    )
