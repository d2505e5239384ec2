"""Hypothesis strategies for every message, made from the models: a new field needs no new strategy."""

from __future__ import annotations

import types
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin

from annotated_types import Ge, Le
from hypothesis import strategies as st
from pydantic import AfterValidator, BaseModel, JsonValue, StringConstraints
from pydantic.fields import FieldInfo

from consilium import messages
from consilium.codec import MAX_ID, Codec

if TYPE_CHECKING:
    from collections.abc import Mapping

UNIONS: dict[str, Any] = {
    "control from seat": messages.ControlFromSeat,
    "control to seat": messages.ControlToSeat,
    "data from seat": messages.DataFromSeat,
    "data to seat": messages.DataToSeat,
    "admin from operator": messages.AdminFromOperator,
    "admin to operator": messages.AdminToOperator,
}
CODECS: dict[str, Codec[messages.Message]] = {name: Codec(union) for name, union in UNIONS.items()}

ids = st.text(min_size=1, max_size=MAX_ID)

# What orjson can write: integers of 64 bits, and neither NaN nor infinity.
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=8,
)


def members(union: Any) -> tuple[type[messages.Message], ...]:
    """The classes of one union of `consilium.messages`."""
    return get_args(get_args(union)[0])


def messages_of(union: Any) -> st.SearchStrategy[messages.Message]:
    return st.one_of([model(member) for member in members(union)])


def model(kind: type[BaseModel]) -> st.SearchStrategy[Any]:
    """Instances of ``kind``; a field that has a default is left out now and then."""
    required: dict[str, Any] = {}
    optional: dict[str, Any] = {}
    for name, field in kind.model_fields.items():
        if name != "type":
            values = annotated(field.annotation, field.metadata)
            (required if field.is_required() else optional)[name] = values
    return st.fixed_dictionaries(required, optional=optional).map(lambda fields: kind(**fields))


def annotated(kind: Any, metadata: list[Any]) -> st.SearchStrategy[Any]:  # noqa: PLR0911 - one a kind
    """Values of one annotation, within the bounds that stand beside it."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return annotated(arguments[0], [*arguments[1:], *metadata])
    if kind is JsonValue:
        return json_values
    if origin in (Union, types.UnionType):
        return st.one_of([annotated(each, metadata) for each in arguments])
    if origin is Literal:
        return st.sampled_from(arguments)
    if origin is tuple:
        return st.lists(annotated(arguments[0], []), max_size=4).map(tuple)
    if origin is dict:
        return st.dictionaries(annotated(arguments[0], []), annotated(arguments[1], []), max_size=4)
    if issubclass(kind, BaseModel):
        return model(kind)
    return st.sampled_from(list(kind)) if issubclass(kind, Enum) else scalar(kind, bounds(metadata))


def bounds(metadata: list[Any]) -> Mapping[str, Any]:
    found: dict[str, Any] = {}
    for rule in metadata:
        match rule:
            case FieldInfo():
                found |= bounds(rule.metadata)
            case StringConstraints():
                found |= {"min_size": rule.min_length or 0, "max_size": rule.max_length, "like": rule.pattern}
            case Ge():
                found["min_value"] = rule.ge
            case Le():
                found["max_value"] = rule.le
            case AfterValidator():  # the bound in bytes, which no short text reaches
                pass
    return found


def scalar(kind: type, limits: Mapping[str, Any]) -> st.SearchStrategy[Any]:
    if kind is type(None):
        return st.none()
    if kind is bool:
        return st.booleans()
    if kind is int:
        return st.integers(limits["min_value"], limits["max_value"])
    if kind is float:
        return st.floats(
            limits.get("min_value"), limits.get("max_value"), allow_nan=False, allow_infinity=False
        )
    assert kind is str, f"no strategy for {kind}"
    if limits.get("like"):
        return st.from_regex(limits["like"].removesuffix("$") + r"\Z")
    return st.text(min_size=limits.get("min_size", 0), max_size=min(limits.get("max_size") or 60, 60))
