"""Configuration: default < preset < command line, strict and stored with each run."""

import dataclasses
import hashlib
import json
import math
import re
import types
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import yaml

from playground.errors import PlaygroundError, unknown
from playground.paths import asset_folder

T = TypeVar("T")
_SCIENTIFIC = re.compile(r"[+-]?\d+(\.\d*)?[eE][+-]?\d+")


def preset_path(folder: str, name: str) -> Path:
    """Returns the file of a preset by name, or `name` itself if it is a YAML file.

    Args:
      folder: Whose presets: a task's name.
      name: "quick", "full", ... or a path that ends in .yaml.

    Raises:
      PlaygroundError: there is no such preset or file.
    """
    if name.endswith((".yaml", ".yml")):
        if not Path(name).is_file():
            raise PlaygroundError(f"preset file '{name}' does not exist")
        return Path(name)
    found = {
        path.stem: path for path in (asset_folder("configs") / folder).glob("*.yaml")
    }
    if name not in found:
        raise unknown(f"preset of {folder}", name, found)
    return found[name]


class _StrictLoader(yaml.SafeLoader):
    """Refuses a key that stands twice; plain YAML takes the last without a word."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        seen = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value in seen:
                raise yaml.MarkedYAMLError(
                    problem=f"the key '{key.value}' stands twice",
                    problem_mark=key.start_mark,
                )
            seen.add(str(key.value))
        return node


def read_yaml(path: Path) -> dict[str, Any]:
    """Returns the mapping in a YAML file, which holds one key at least.

    Raises:
      PlaygroundError: the file is no such mapping, or a key stands in it twice.
    """
    try:
        values = yaml.load(path.read_text(), _StrictLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = f", line {mark.line + 1}" if mark else ""
        raise PlaygroundError(f"cannot read '{path}'{line}: {error.problem}") from error
    except (OSError, ValueError, yaml.YAMLError) as error:
        message = getattr(error, "strerror", None) or " ".join(str(error).split())
        raise PlaygroundError(f"cannot read '{path}': {message}") from error
    if not values:
        raise PlaygroundError(f"'{path}' is empty: it has to hold keys and values")
    if not isinstance(values, Mapping):
        raise PlaygroundError(f"'{path}' holds no mapping of keys to values")
    return dict(values)


def merge(config: T, values: Mapping[str, Any], where: str = "") -> T:
    """Returns a frozen dataclass with some values replaced, nested ones too.

    Args:
      config: What to start from.
      values: Field name -> value; a mapping for a nested dataclass.
      where: Path of `config` within the whole, for messages.

    Raises:
      PlaygroundError: an unknown key or a value of the wrong type.
    """
    hints = typing.get_type_hints(type(config))
    changes = {}
    for key, value in values.items():
        if key not in hints:
            raise unknown(
                "configuration key", f"{where}{key}", [where + h for h in hints]
            )
        current = getattr(config, key)
        if dataclasses.is_dataclass(current):
            if not isinstance(value, Mapping):
                raise PlaygroundError(f"{where}{key} is a group of keys, got {value!r}")
            changes[key] = merge(current, value, f"{where}{key}.")
        else:
            changes[key] = _convert(value, hints[key], f"{where}{key}")
    return dataclasses.replace(config, **changes)  # type: ignore[type-var]


def require_finite(config: Any, where: str = "") -> None:
    """Checks that no number of a config is infinite or none at all.

    Ranges are checked where they stand, but NaN is neither below nor above anything.

    Raises:
      PlaygroundError: one is; names it.
    """
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if dataclasses.is_dataclass(value):
            require_finite(value, f"{where}{field.name}.")
        for number in value if isinstance(value, tuple) else (value,):
            if isinstance(number, float) and not math.isfinite(number):
                raise PlaygroundError(f"{where}{field.name} must be finite: {number}")


def differences(before: T, after: T, where: str = "") -> dict[str, tuple[Any, Any]]:
    """Returns path -> (value before, value after) of what differs in two configs."""
    found: dict[str, tuple[Any, Any]] = {}
    for field in dataclasses.fields(before):  # type: ignore[arg-type]
        values = getattr(before, field.name), getattr(after, field.name)
        if dataclasses.is_dataclass(values[0]):
            found |= differences(*values, f"{where}{field.name}.")
        elif values[0] != values[1]:
            found[f"{where}{field.name}"] = values
    return found


def to_dict(config: Any) -> dict[str, Any]:
    """Returns a config as plain mappings, lists and scalars, ready for YAML or JSON."""
    return json.loads(json.dumps(dataclasses.asdict(config)))


def to_yaml(config: Any) -> str:
    """Returns a config as YAML, in the order of its fields."""
    return yaml.safe_dump(to_dict(config), sort_keys=False)


def config_hash(config: Any) -> str:
    """Returns 12 hex digits that change with any value of a config."""
    text = json.dumps(to_dict(config), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _convert(value: Any, hint: Any, where: str) -> Any:
    """Returns `value` as the type `hint`, without guessing."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        if value is None and type(None) in args:
            return None
        return _convert(value, next(a for a in args if a is not type(None)), where)
    if origin is typing.Literal:
        if value not in args:
            raise unknown(where, str(value), args)
        return value
    if origin is tuple:
        many = args[1:] == (...,)
        size = "" if many else f" of {len(args)}"
        if not isinstance(value, list | tuple) or not (many or len(value) == len(args)):
            raise PlaygroundError(f"{where} must be a list{size}, got {value!r}")
        kinds = args[:1] * len(value) if many else args
        return tuple(_convert(v, k, where) for v, k in zip(value, kinds, strict=True))
    if hint in (int, float) and isinstance(value, str) and _SCIENTIFIC.fullmatch(value):
        value = float(value)  # YAML reads 1e-4 and 1e6, without a dot, as text
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if hint is int and isinstance(value, float) and value.is_integer():
        return int(value)
    if not isinstance(value, hint) or (hint is not bool and isinstance(value, bool)):
        raise PlaygroundError(f"{where} must be {hint.__name__}, got {value!r}")
    return value
