"""Generated models of values that this build made itself: they are not validated again."""

from collections.abc import Mapping

from pydantic import BaseModel

__all__ = ["altered", "built"]

_new = object.__new__
_set = object.__setattr__  # models are frozen


def altered[M: BaseModel](model: M, fields: Mapping[str, object]) -> M:
    """Return a copy of `model` with other values: `model_copy` in a third of its time."""
    return _made(
        type(model), {**vars(model), **fields}, model.__pydantic_fields_set__ | fields.keys()
    )


def built[M: BaseModel](model: type[M], fields: dict[str, object]) -> M:
    """Return a model of all its fields in their order; `fields` becomes its own."""
    return _made(model, fields, set(fields))


def _made[M: BaseModel](model: type[M], fields: dict[str, object], names: set[str]) -> M:
    made = _new(model)
    _set(made, "__dict__", fields)
    _set(made, "__pydantic_fields_set__", names)
    _set(made, "__pydantic_extra__", None)
    _set(made, "__pydantic_private__", None)
    return made
