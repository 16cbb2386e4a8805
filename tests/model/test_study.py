from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from ensign.model import study
from ensign.model.study import Study, study_schema
from ensign.model.validation import Section


def models() -> list[type[BaseModel]]:
    found = [value for value in vars(study).values() if isinstance(value, type)]
    return [m for m in found if issubclass(m, BaseModel) and m is not Section]


def test_every_key_is_described() -> None:
    for model in models():
        for name, field in model.model_fields.items():
            if name != "kind":
                assert field.description, f"{model.__name__}.{name}"


def test_the_schema_has_every_key_and_forbids_others() -> None:
    schema: dict[str, Any] = study_schema()
    assert schema["$schema"].startswith("https://json-schema.org/")
    assert set(schema["properties"]) == set(Study.model_fields)
    assert schema["required"] == ["name", "source", "build", "axes", "baseline"]
    for name, definition in schema["$defs"].items():
        assert definition["additionalProperties"] is False, name
        for key, value in definition["properties"].items():
            assert value.get("description") or key == "kind", f"{name}.{key}"
