"""What `--verify` of `ensign report` and `ensign bundle` does."""

from __future__ import annotations

from pathlib import Path

from ensign.cli.output import say
from ensign.experiment.figures import Verification
from ensign.model.errors import InputError
from ensign.tools import bundles

_DIFFERS = 1


def verify(path: Path, signers: Path | None) -> int:
    """See `ensign.cli.study.report`. Returns the exit status."""
    found = _of_bundle(path, signers, must=signers is not None)
    if not found.differs:
        try:
            with bundles.opened(path) as opened:
                found += opened.verified()
        except bundles.BundleChanged as changed:
            found += Verification((), (str(changed),))
    return _told(path, found)


def verify_bundle(path: Path, signers: Path | None) -> int:
    """See `ensign.cli.study.bundle`. Returns the exit status."""
    if not bundles.is_bundle(path):
        raise InputError(f"{path} is not a bundle; 'ensign report {path} --verify' checks a study")
    found = _of_bundle(path, signers, must=True)
    try:
        with bundles.opened(path):
            whole = Verification(("no file in it is missing, changed or added",), ())
    except bundles.BundleChanged as changed:
        whole = Verification((), (str(changed),))
    return _told(path, found + whole)


def _of_bundle(path: Path, signers: Path | None, *, must: bool) -> Verification:
    """Who signed it; that nobody did is wrong where it `must` be signed."""
    if not bundles.is_bundle(path):
        if signers is not None:
            raise InputError(f"{path} is not a bundle: --signers is about those")
        return Verification((), ())
    try:
        signer = bundles.signer_of_bundle(path, signers)
    except bundles.BadSignatureError as error:
        why = f"{path} was changed after it was signed, or its signature was ({error})"
        return Verification((), (why,))
    if signer is None:
        unsigned = f"{path} is not signed: nobody vouches for it"
        return Verification((), (unsigned,)) if must else Verification((unsigned,), ())
    if signer.trusted is False:
        unknown = f"{path} is signed with the key {signer.key}, which none of {signers} has"
        return Verification((), (unknown,))
    if signer.trusted:
        return Verification((f"signed by {signer.name}, with the key {signer.key}",), ())
    whose = "whose that is, --signers FILE says (an allowed_signers file of ssh-keygen)"
    return Verification((f"signed with the key {signer.key}; {whose}",), ())


def _told(path: Path, found: Verification) -> int:
    for text in found.checked:
        say(f"{text}\n")
    for text in found.differs:
        say(f"DIFFERS: {text}\n")
    if found.differs:
        return _DIFFERS
    say(f"Verified: {path}\n")
    return 0
