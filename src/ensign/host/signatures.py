"""Signatures of texts by the keys that people have for SSH (`ssh-keygen -Y`)."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from ensign.host.temporary import temporary_folder
from ensign.model.errors import InputError
from ensign.model.quoting import quoted

_NAMESPACE = "ensign"
_SHOWN = 200


@dataclass(frozen=True, slots=True)
class Signer:
    """Signer: the fingerprint of the key, and its name in the list of signers, if asked.

    `trusted` is None where no list was given.
    """

    key: str
    name: str = ""
    trusted: bool | None = None


class BadSignatureError(Exception):
    """It is no signature of that text; the text says so."""


def sign(data: bytes, key: Path) -> bytes:
    """The signature by a key's file; ssh-keygen may ask for its passphrase, or an agent.

    InputError where that cannot be done.
    """
    if not key.is_file():
        raise InputError(f"there is no key {key}; 'ssh-keygen -t ed25519' makes one")
    done = _ssh_keygen(data, "sign", "-f", str(key))
    if done.returncode:
        raise InputError(f"{key} cannot sign: {_said(done)}")
    return done.stdout


def signer_of(data: bytes, signature: bytes, signers: Path | None = None) -> Signer:
    """Signer of a text. BadSignatureError where it was changed since, or the signature was.

    `signers` has whom to trust, as `allowed_signers` of ssh-keygen. InputError where that is no
    file, or ssh-keygen is missing.
    """
    if signers is not None and not signers.is_file():
        raise InputError(f"there is no list of signers {signers} (allowed_signers of ssh-keygen)")
    with temporary_folder("signature") as folder:
        file = folder / "signature"
        file.write_bytes(signature)
        sound = _ssh_keygen(data, "check-novalidate", "-s", str(file))
        if sound.returncode:
            raise BadSignatureError(_said(sound))
        key = _key_of(sound)
        if signers is None:
            return Signer(key)
        process = _ssh_keygen(b"", "find-principals", "-s", str(file), "-f", str(signers))
        names = [line for line in _text(process.stdout).splitlines() if line]
        for name in names if process.returncode == 0 else []:
            # The list may allow a key for other purposes, or for another time only.
            listed = ("-f", str(signers), "-I", name, "-s", str(file))
            if _ssh_keygen(data, "verify", *listed).returncode == 0:
                return Signer(key, quoted(name), trusted=True)
    return Signer(key, trusted=False)


def _ssh_keygen(data: bytes, verb: str, *options: str) -> subprocess.CompletedProcess[bytes]:
    program = shutil.which("ssh-keygen")
    if program is None:
        raise InputError(
            "signatures need ssh-keygen; run 'apt-get install openssh-client' (elsewhere the "
            "package is called openssh, or openssh-clients)"
        )
    namespace = () if verb == "find-principals" else ("-n", _NAMESPACE)
    return subprocess.run(
        [program, "-Y", verb, *namespace, *options], input=data, capture_output=True, check=False
    )


def _key_of(done: subprocess.CompletedProcess[bytes]) -> str:
    """`Good "ensign" signature with ED25519 key SHA256:…`."""
    kind, _, key = _text(done.stdout).strip().rpartition(" with ")[2].rpartition(" key ")
    return f"{key} ({kind})" if kind else key


def _said(done: subprocess.CompletedProcess[bytes]) -> str:
    lines = [line.strip() for line in _text(done.stderr or done.stdout).splitlines()]
    return next((line for line in lines if line), f"ssh-keygen ended with {done.returncode}")


def _text(data: bytes) -> str:
    text = data[: 100 * _SHOWN].decode(errors="replace")
    return "".join(
        character if character.isprintable() or character == "\n" else "?" for character in text
    )
