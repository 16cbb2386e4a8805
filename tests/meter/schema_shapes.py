"""JSON Schemas made alike, so that those of two languages can be compared."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

PROTOCOL = json.loads(
    (Path(__file__).parents[2] / "meter" / "protocol" / "schema.json").read_text()
)
_NULL = {"type": "null"}


def resolved(schema: Any, root: Any) -> Any:
    """The schema that a reference leads to, beside what stands next to it."""
    while "$ref" in schema:
        rest = {key: each for key, each in schema.items() if key != "$ref"}
        target = root["$defs"][schema["$ref"].rpartition("/")[2]]
        schema = {**target, **rest}
        for key in ("properties", "required"):
            if key in rest and key in target:
                both = target[key], rest[key]
                schema[key] = {**both[0], **both[1]} if key == "properties" else both[0] + both[1]
    return schema


def members(schema: Any, root: Any) -> list[Any]:
    """What a value may be, one schema for each kind of it; null is one."""
    schema = resolved(schema, root)
    for union in ("anyOf", "oneOf"):
        if union in schema:
            return [each for part in schema[union] for each in members(part, root)]
    if isinstance(schema.get("type"), list):
        return [{**schema, "type": each} for each in schema["type"]]
    return [schema]


def is_nullable(schema: Any, root: Any) -> bool:
    """Whether it may be null."""
    return any(each.get("type") == "null" for each in members(schema, root))


def shape(schema: Any, root: Any, *, bounds: bool = True) -> Any:
    """Types, bounds, words and keys of a schema, without null; equal where two mean the same."""
    kinds = [each for each in members(schema, root) if each.get("type") != "null"]
    words = [word for each in kinds for word in _words(each)]
    if words and all(isinstance(word, int) for word in words):
        return {"integer": {"minimum": min(words), "maximum": max(words)}}
    found = [_one(each, root, bounds=bounds) for each in kinds if not list(_words(each))]
    found += [{"words": sorted(words)}] if words else []
    found.sort(key=json.dumps)
    return found[0] if len(found) == 1 else found


def _words(schema: Any) -> Iterator[Any]:
    if "const" in schema:
        yield schema["const"]
    yield from schema.get("enum", ())


def _one(schema: Any, root: Any, *, bounds: bool) -> Any:
    kind = schema.get("type")
    if kind in ("integer", "number"):
        named = ("minimum", "maximum", "exclusiveMinimum")
        return {kind: {key: schema[key] for key in named if key in schema} if bounds else {}}
    if kind == "array" and "prefixItems" in schema:
        # What two numbers must be together is no matter of a schema.
        return [shape(each, root, bounds=False) for each in schema["prefixItems"]]
    if kind == "array":
        return {"list": shape(schema["items"], root, bounds=bounds)}
    if kind == "object" and "properties" in schema:
        return {key: shape(each, root, bounds=bounds) for key, each in schema["properties"].items()}
    if kind == "object":
        return {"map": shape(schema["additionalProperties"], root, bounds=bounds)}
    return kind


def keys_of(value: Any, schema: Any, root: Any, name: str) -> Iterator[tuple[str, str]]:
    """The keys that a document has, each with the object of the schema that it belongs to.

    AssertionError where the schema has no such key: readers would ignore it.
    """
    if isinstance(value, list):
        item = next(each for each in members(schema, root) if each.get("type") == "array")
        for index, each in enumerate(value):
            of = item["items"] if "items" in item else item["prefixItems"][index]
            yield from keys_of(each, of, root, name)
    if not isinstance(value, Mapping):
        return
    whole = next(each for each in members(schema, root) if each.get("type") == "object")
    for key, each in value.items():
        if "properties" not in whole:
            yield from keys_of(each, whole["additionalProperties"], root, name)
            continue
        assert key in whole["properties"], f"{name}: {key}"
        yield name, key
        yield from keys_of(each, whole["properties"][key], root, f"{name}.{key}")


def all_keys(schema: Any, root: Any, name: str) -> Iterator[tuple[str, str]]:
    """Every key that a schema knows, named as `keys_of` names them."""
    for kind in members(schema, root):
        if "items" in kind:
            yield from all_keys(kind["items"], root, name)
        for key, each in kind.get("properties", {}).items():
            yield name, key
            yield from all_keys(each, root, f"{name}.{key}")
