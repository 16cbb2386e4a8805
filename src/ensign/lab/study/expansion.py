"""What a suite's tests became, as a file: a bundle is read where nothing can be fetched."""

from __future__ import annotations

import json
from pathlib import Path

from ensign.host.json_text import read_json
from ensign.model.errors import InputError
from ensign.model.study import Study, Training
from ensign.model.study_workload import Workload


def expansion(study: Study) -> bytes:
    """Workloads and training of a study whose suite was taken in. Pure."""
    training = None if study.training is None else study.training.model_dump(exclude_unset=True)
    workloads = [each.model_dump(exclude_unset=True) for each in study.workloads]
    return json.dumps({"workloads": workloads, "training": training}, indent=1).encode()


def expanded_again(path: Path, study: Study) -> Study:
    """The study with the workloads and the training of such a file. InputError without one."""
    try:
        said = read_json(path.read_bytes())
        training = said["training"] and Training.model_validate(said["training"])
        workloads = [Workload.model_validate(each) for each in said["workloads"]]
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError("the bundle does not say what its suite's tests are") from None
    changes = {"suite": None, "workloads": workloads, "training": training}
    return study.model_copy(update=changes)
