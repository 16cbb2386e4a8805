"""Debian source packages, fetched with apt's own tools from a list of our own.

The system's configuration and lists are only read: apt gets a private folder for its state, and
`deb-src` lines for the mirrors the system uses. Works as any user. Signatures are checked by apt.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ensign.host.cache import key_of
from ensign.host.files import remove_tree
from ensign.host.processes import Outcome
from ensign.model.errors import InputError
from ensign.model.study_source import DebianSource
from ensign.sources.archive import check_sha256
from ensign.sources.downloads import Fetched, Fetcher, last_line
from ensign.sources.unpack import unpack

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
        archives = [file for file in self.files if ".tar." in file[0] and file[0][-4:] != ".asc"]
        orig = [archive for archive in archives if ".orig.tar." in archive[0]]
        own = orig or (archives if len(archives) == 1 else [])
        return own[0] if own else None

    def orig(self, sha256: str) -> str | None:
        """Return the name of that archive if it has that checksum."""
        archive = self.archive
        return archive[0] if archive is not None and archive[1] == sha256 else None


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


_APT = Path("/etc/apt")
# Clearing the hooks keeps a container's "remove all downloads" from touching the system's cache.
_CONFIGURATION = """\
Dir::Etc::sourcelist "/dev/null";
Dir::Etc::sourceparts "{folder}/sources";
Dir::State "{folder}/state";
Dir::State::lists "{folder}/lists";
Dir::State::status "{folder}/status";
Dir::Cache "{folder}/cache";
Acquire::Languages "none";
Acquire::Retries "3";
APT::Sandbox::User "";
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
"""


def fetch_debian(source: DebianSource, fetcher: Fetcher) -> Fetched:
    """Fetch and unpack a source package. InputError if no revision carries the pinned archive."""
    if source.patches:
        return _fetch_patched(source, fetcher)
    title = f"the orig archive of {source.package} {source.version}"
    orig = fetcher.cached_download(source.sha256)
    if orig is None:
        apt = _Apt(source, fetcher)
        revision, name = apt.choose(apt.revisions())
        apt.download(revision, "--tar-only")
        check_sha256(fetcher.work / name, source.sha256, title)
        orig = fetcher.keep_download(source.sha256, fetcher.work / name)
    tree = fetcher.work / "tree"
    unpack(orig, tree, 1, title)
    return Fetched(tree)


def _fetch_patched(source: DebianSource, fetcher: Fetcher) -> Fetched:
    pinned = fetcher.pinned.get("revision", "")
    cached = fetcher.cache.get("debian", _patched_key(source, pinned)) if pinned else None
    if cached is None:
        apt = _Apt(source, fetcher)
        revisions = apt.revisions()
        if pinned:
            revisions = [each for each in revisions if each.version == pinned]
            if not revisions:
                raise InputError(
                    f"{source.package} {pinned}, which the lock file pins with its patches, is "
                    "no longer offered; run again with --update-lock to take the present revision"
                )
        revision, _ = apt.choose(revisions)
        pinned = revision.version
        apt.download(revision)

        def fill(folder: Path) -> Mapping[str, object]:
            for name, _ in revision.files:
                (fetcher.work / name).rename(folder / name)
            return {"label": f"{revision.package} {revision.version}"}

        cached = fetcher.cache.make("debian", _patched_key(source, pinned), fill)
    tree = fetcher.work / "tree"
    described = next(cached.folder.glob("*.dsc"))
    unpacked = fetcher.run("dpkg-source", "--no-check", "-x", str(described), str(tree))
    _expect(unpacked, "dpkg-source", "dpkg-dev")
    remove_tree(tree / ".pc")
    return Fetched(tree, (("revision", pinned),))


def _patched_key(source: DebianSource, revision: str) -> str:
    return key_of([source.package, source.sha256, revision])


class _Apt:
    def __init__(self, source: DebianSource, fetcher: Fetcher) -> None:
        self._source = source
        self._fetcher = fetcher
        self._folder = fetcher.work / "apt"

    def revisions(self) -> list[Revision]:
        """Read what the mirrors offer. InputError if they cannot be read."""
        listed = source_list(system_stanzas())
        if not listed:
            raise InputError(
                f"'{self._source.package}' is a Debian source package, but apt has no mirror "
                f'configured below {_APT}; use kind = "archive" instead'
            )
        for name in ("sources", "state", "lists/partial", "cache/archives/partial"):
            (self._folder / name).mkdir(parents=True)
        (self._folder / "sources/ensign.sources").write_text(listed)
        (self._folder / "status").touch()
        (self._folder / "apt.conf").write_text(_CONFIGURATION.format(folder=self._folder))
        _expect(self._run("apt-get", "--quiet", "update"), "apt-get update", "apt")
        # Through a file: an outcome holds the last bytes of the output only.
        path = self._folder / "found"
        command = 'exec apt-cache -c "$1" showsrc --only-source "$2" > "$3"'
        configuration = str(self._folder / "apt.conf")
        package = self._source.package
        outcome = self._fetcher.run("sh", "-c", command, "sh", configuration, package, str(path))
        revisions = parse_revisions(path.read_text()) if outcome.ok else []
        if not revisions:
            raise InputError(f"this system's mirrors have no source package '{package}'")
        return revisions

    def choose(self, revisions: list[Revision]) -> tuple[Revision, str]:
        """Take the last revision with the pinned archive; and that archive's name."""
        wanted = self._source
        for revision in reversed(revisions):
            name = revision.orig(wanted.sha256)
            if name is not None and upstream_version(revision.version) == wanted.version:
                return revision, name
        offered = ", ".join(_offer(revision) for revision in revisions) or "none"
        raise InputError(
            f"no revision of {wanted.package} {wanted.version} carries an orig archive with "
            f"SHA-256 {wanted.sha256}; offered: {offered}"
        )

    def download(self, revision: Revision, *options: str) -> None:
        """Download a revision's files into the work folder."""
        wanted = f"{revision.package}={revision.version}"
        outcome = self._run(
            "apt-get", "--quiet", "source", "--only-source", "--download-only", *options, wanted
        )
        _expect(outcome, "apt-get source", "apt")

    def _run(self, program: str, *arguments: str) -> Outcome:
        return self._fetcher.run(program, "-c", str(self._folder / "apt.conf"), *arguments)


def _offer(revision: Revision) -> str:
    archive = revision.archive
    return f"{revision.version} ({'no orig archive' if archive is None else archive[1]})"


def system_stanzas() -> list[dict[str, str]]:
    """Paragraphs that tell apt of its archives."""
    stanzas = []
    for path in sorted([_APT / "sources.list", *(_APT / "sources.list.d").glob("*")]):
        if not path.is_file():
            continue
        if path.suffix == ".sources":
            stanzas += parse_deb822(path.read_text(errors="replace"))
        elif path.suffix == ".list":
            stanzas += parse_one_line(path.read_text(errors="replace"))
    return stanzas


def _expect(outcome: Outcome, program: str, package: str) -> None:
    if outcome.reason == "not-found":
        raise InputError(
            f"a Debian source package needs {program}; run 'apt-get install {package}' (Debian and "
            'its kin), or use kind = "archive"'
        )
    if not outcome.ok:
        raise InputError(f"{program} failed: {last_line(outcome)}")
