"""Generated models whose values this build made itself, and at which nobody has to look again."""

from collections.abc import Callable, Mapping
from typing import Final, cast

from pydantic import BaseModel

__all__ = ["altered", "trusted"]

_new: Final = object.__new__
_set: Final = object.__setattr__  # models are frozen


def altered[M: BaseModel](model: M, fields: Mapping[str, object]) -> M:
    """Return a copy with other values, not validated: `model_copy` in a third of its time."""
    made = _new(type(model))
    _set(made, "__dict__", {**vars(model), **fields})
    _set(made, "__pydantic_fields_set__", model.__pydantic_fields_set__)
    _set(made, "__pydantic_extra__", None)
    _set(made, "__pydantic_private__", None)
    return made


def trusted[**P, M: BaseModel](model: Callable[P, M]) -> Callable[P, M]:
    """Return what makes such models without validation, in a third of the time.

    The type checker sees the parameters of `model`. For values that this build made or has
    validated; what comes from a provider, a tool or a caller goes through `model` itself.
    """
    if not (isinstance(model, type) and issubclass(model, BaseModel)):
        raise TypeError(f"{model!r} is no generated model")
    fields = model.model_fields
    defaults = {name: None if one.is_required() else one.default for name, one in fields.items()}
    names = set(fields)  # frozen models share it: none can change it

    def make(*_: P.args, **given: P.kwargs) -> M:
        made = cast("M", _new(model))
        _set(made, "__dict__", {**defaults, **given})  # in the order of the fields
        _set(made, "__pydantic_fields_set__", names)
        _set(made, "__pydantic_extra__", None)
        _set(made, "__pydantic_private__", None)
        return made

    return make
