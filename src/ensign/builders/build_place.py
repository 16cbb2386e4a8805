"""The place on this machine where a request is built: sandboxes, and facts for the plan."""

from __future__ import annotations

from collections.abc import Mapping

from ensign.builders.build_context import BuildContext
from ensign.builders.environments import NO_ENVIRONMENTS, Environments
from ensign.builders.plan import BuildPlace
from ensign.builders.profiles import files_named
from ensign.builders.request import BuildPorts, BuildRequest
from ensign.builders.sandbox_mounts import (
    confinement_of,
    given_env,
    sandbox_key,
    shown_to_builds,
    tree_limits,
)
from ensign.builders.sandboxes import Sandboxes, choose_sandboxes
from ensign.host.cache import key_of
from ensign.host.files import file_sha256, is_file
from ensign.meter.questions import read_processor
from ensign.toolchains.find import Toolchain


def sandboxes_of(
    request: BuildRequest, ports: BuildPorts, toolchains: Mapping[str, Toolchain]
) -> Sandboxes:
    """Sandboxes of a request: confined, if that is wanted and works here. InputError."""
    confinement = confinement_of(request, ports)
    return choose_sandboxes(
        ports.cache, confinement, shown_to_builds(request, ports, toolchains, confinement.user)
    )


def build_context_of(
    request: BuildRequest, ports: BuildPorts, sandboxes: Sandboxes, place: BuildPlace
) -> BuildContext:
    """Context in which a request's stages are carried out."""
    return BuildContext(
        processes=ports.processes,
        cache=ports.cache,
        sandboxes=sandboxes,
        clock=ports.clock,
        path=place.path,
        meter=ports.meter,
        trainer=ports.trainer,
        given_env=given_env(request.study.sandbox, ports.env),
        sandbox_key=place.sandbox_key,
        caller=ports.env,
        limits=tree_limits(request.study.sandbox),
    )


def place_of(
    hashes: Mapping[str, str],
    sandboxes: Sandboxes,
    request: BuildRequest,
    ports: BuildPorts,
    environments: Environments = NO_ENVIRONMENTS,
) -> BuildPlace:
    """Facts that a plan needs about this machine and the files that the training names.

    `hashes` are of the source's trees by revision, the baseline's first.
    """
    recorded = ports.meter is not None
    return BuildPlace(
        source_sha256=next(iter(hashes.values())),
        build_path=sandboxes.build_path,
        processor=read_processor().identity,
        path=ports.env.get("PATH", "/usr/bin:/bin"),
        recorder_path=f"{sandboxes.recorder_path}/bin" if recorded else "",
        training_sha256=_training_sha256(request),
        sandbox_key=sandbox_key(request.study.sandbox, ports.env),
        roots=environments.roots,
        revisions=hashes,
    )


def _training_sha256(request: BuildRequest) -> str:
    """Hash of the files beside the study that its training names."""
    folder = request.path.absolute().parent
    files = [(name, folder / name) for name in files_named(request.study) if name]
    return key_of([(name, file_sha256(path)) for name, path in files if is_file(path)])
