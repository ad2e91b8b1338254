"""Values that fit a JSON Schema, and values beside it, for any schema that a hint can have."""

from collections.abc import Mapping

from hypothesis import strategies as st
from pydantic import JsonValue

__all__ = ["anything", "fitting"]

type Values = st.SearchStrategy[JsonValue]

_FORMATS: Mapping[str, tuple[str, ...]] = {
    "binary": ("", "a"),
    "date": ("2026-01-31",),
    "date-time": ("2026-01-31T10:00:00Z", "2026-01-31T10:00:00"),
    "duration": ("P1D", "PT5S"),
    "ipv4": ("127.0.0.1",),
    "path": ("a/b",),
    "time": ("10:00:00",),
    "uri": ("https://example.com/a",),
    "uuid": ("6ba7b810-9dad-11d1-80b4-00c04fd430c8",),
}
_WORDS = st.sampled_from(["", "a", "b", "abc", "red", "1", "1.5", "é", "true"])


def anything() -> Values:
    """Return small JSON of every kind, from few words, so that it fits now and then."""
    scalars: Values = (
        st.none() | st.booleans() | st.integers(-1, 12) | st.sampled_from([0.5, 1.0]) | _WORDS
    )
    names = st.sampled_from(["x", "y", "kind", "other", "1", "red"])
    return st.recursive(
        scalars,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
        max_leaves=5,
    )


def fitting(schema: JsonValue, definitions: Mapping[str, JsonValue]) -> Values:
    """Return what the schema accepts."""
    if not isinstance(schema, dict) or not schema.keys() - {"description", "default", "title"}:
        return anything()
    if isinstance(reference := schema.get("$ref"), str):
        target = definitions[reference.removeprefix("#/$defs/")]
        return st.deferred(lambda: fitting(target, definitions))
    for key in ("anyOf", "oneOf"):
        if isinstance(branches := schema.get(key), list):
            return st.one_of([fitting(one, definitions) for one in branches])
    if "const" in schema:
        return st.just(schema["const"])
    if isinstance(choices := schema.get("enum"), list):
        return st.sampled_from(choices)
    return _of_type(schema, definitions)


def _of_type(schema: Mapping[str, JsonValue], definitions: Mapping[str, JsonValue]) -> Values:
    match schema["type"]:
        case "null":
            return st.none()
        case "boolean":
            return st.booleans()
        case "integer" | "number":
            least, most = _integer(schema, "minimum", -5), _integer(schema, "maximum", 12)
            return st.integers(least, most)
        case "string":
            if isinstance(pattern := schema.get("pattern"), str):
                return st.from_regex(pattern, fullmatch=True)
            if isinstance(form := schema.get("format"), str):
                return st.sampled_from(_FORMATS[form])
            least, most = _integer(schema, "minLength", 0), _integer(schema, "maxLength", 4)
            return st.text("abé", min_size=least, max_size=most)
        case "array":
            return _arrays(schema, definitions)
        case _:
            return _objects(schema, definitions)


def _arrays(schema: Mapping[str, JsonValue], definitions: Mapping[str, JsonValue]) -> Values:
    least = _integer(schema, "minItems", 0)
    if isinstance(places := schema.get("prefixItems"), list):
        items = [fitting(one, definitions) for one in places]
        return st.integers(least, len(items)).flatmap(
            lambda size: st.tuples(*items[:size]).map(list)
        )
    if schema.get("maxItems") == 0:
        return st.just([])
    return st.lists(
        fitting(schema.get("items"), definitions),
        min_size=least,
        max_size=_integer(schema, "maxItems", least + 2),
        unique_by=repr if schema.get("uniqueItems") else None,
    ).map(list)


def _objects(schema: Mapping[str, JsonValue], definitions: Mapping[str, JsonValue]) -> Values:
    properties, required = schema.get("properties"), schema.get("required", [])
    if isinstance(properties, dict) and isinstance(required, list):
        fields = {name: fitting(one, definitions) for name, one in properties.items()}
        return st.fixed_dictionaries(
            {name: one for name, one in fields.items() if name in required},
            optional={name: one for name, one in fields.items() if name not in required},
        ).map(dict)
    names = schema.get("propertyNames")
    keys = fitting({"type": "string", **names}, definitions) if isinstance(names, dict) else _WORDS
    values = fitting(schema.get("additionalProperties"), definitions)
    return st.dictionaries(keys.map(str), values, max_size=2).map(dict)


def _integer(schema: Mapping[str, JsonValue], key: str, otherwise: int) -> int:
    found = schema.get(key, otherwise)
    assert isinstance(found, int)
    return found
