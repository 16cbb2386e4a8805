"""Reading apt's configuration and answers, and writing a private one. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

_KEPT = ("uris", "suites", "components", "signed-by", "trusted", "by-hash", "check-valid-until")
_SPELLED = {"uris": "URIs"}
_ONE_LINE = re.compile(r"^(deb|deb-src)\s+(?:\[([^\]]*)\]\s+)?(\S+)\s+(\S+)\s*(.*)$")

Stanza = Mapping[str, str]


def parse_deb822(text: str) -> list[dict[str, str]]:
    """Split paragraphs of `Name: value` with continuation lines; names in lower case."""
    stanzas: list[dict[str, str]] = []
    current: dict[str, str] = {}
    name = ""
    for line in [*text.splitlines(), ""]:
        if line.startswith("#"):
            continue
        if not line.strip():
            if current:
                stanzas.append(current)
            current, name = {}, ""
        elif line[0] in " \t":
            if name:
                current[name] += "\n" + line
        elif ":" in line:
            name, _, value = line.partition(":")
            name = name.strip().lower()
            current[name] = value.strip()
    return stanzas


def parse_one_line(text: str) -> list[dict[str, str]]:
    """Read lines such as `deb [signed-by=K] http://mirror suite main`, as deb822 would say it."""
    stanzas = []
    for line in text.splitlines():
        match = _ONE_LINE.match(line.split("#")[0].strip())
        if match is None:
            continue
        kind, options, uri, suite, components = match.groups()
        stanza = {"types": kind, "uris": uri, "suites": suite, "components": components.strip()}
        for option in (options or "").split():
            name, _, value = option.partition("=")
            stanza[name.lower()] = value.replace(",", " ")
        stanzas.append(stanza)
    return stanzas


def source_list(stanzas: Iterable[Stanza]) -> str:
    """Write the `deb-src` sources of the mirrors in use; empty if there are none."""
    paragraphs: list[str] = []
    for stanza in stanzas:
        if stanza.get("enabled", "yes").lower() in ("no", "false", "0"):
            continue
        uris = [uri for uri in stanza.get("uris", "").split() if not uri.startswith("cdrom:")]
        if not uris:
            continue
        lines = ["Types: deb-src"]
        for name in _KEPT:
            value = " ".join(uris) if name == "uris" else stanza.get(name, "")
            if value:
                lines.append(f"{_SPELLED.get(name, name.title())}: {value}")
        paragraph = "\n".join(lines) + "\n"
        if paragraph not in paragraphs:
            paragraphs.append(paragraph)
    return "\n".join(paragraphs)


@dataclass(frozen=True, slots=True)
class Revision:
    """A revision of a source package: its version, and its files with their SHA-256."""

    package: str
    version: str
    files: tuple[tuple[str, str], ...]

    @property
    def archive(self) -> tuple[str, str] | None:
        """The orig archive and its checksum; of a native package its one archive."""
        archives = [each for each in self.files if ".tar." in each[0] and each[0][-4:] != ".asc"]
        orig = [each for each in archives if ".orig.tar." in each[0]]
        found = orig or (archives if len(archives) == 1 else [])
        return found[0] if found else None

    def orig(self, sha256: str) -> str | None:
        """Return the name of that archive if it has that checksum."""
        found = self.archive
        return found[0] if found is not None and found[1] == sha256 else None


def parse_revisions(text: str) -> list[Revision]:
    """Read what `apt-cache showsrc` prints."""
    revisions = []
    for stanza in parse_deb822(text):
        files = []
        for line in stanza.get("checksums-sha256", "").splitlines():
            match line.split():
                case [checksum, _, name]:
                    files.append((name, checksum))
        if "package" in stanza and "version" in stanza:
            revisions.append(Revision(stanza["package"], stanza["version"], tuple(files)))
    return revisions


def upstream_version(version: str) -> str:
    """Strip epoch and Debian revision: `5:7.0.15-1~deb12u7` gives `7.0.15`."""
    bare = version.split(":", 1)[-1]
    return bare.rsplit("-", 1)[0] if "-" in bare else bare
