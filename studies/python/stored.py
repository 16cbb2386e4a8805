"""Prints a zip archive of programs of pyperformance: `python3 stored.py WHEEL NAME...`.

It is not compressed, so that an interpreter without zlib can import from it, and the same each time.
"""

import io
import sys
import zipfile

wheel, *names = sys.argv[1:]
result = io.BytesIO()
with zipfile.ZipFile(wheel) as source, zipfile.ZipFile(result, "w") as made:
    for name in names:
        member = f"pyperformance/data-files/benchmarks/bm_{name}/run_benchmark.py"
        made.writestr(zipfile.ZipInfo(f"{name}.py"), source.read(member))
sys.stdout.buffer.write(result.getvalue())
