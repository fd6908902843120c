"""Settings in plain values: a file keeps a setting as a mapping of its levels.

A mapping that lacks a factor reads as standing at that factor's default.
"""

from typing import Any

from experiments.design.setting import setting


def with_levels(value: Any) -> Any:
    """Plain values, as files have them: a setting is a mapping of its levels."""
    match value:
        case {"setting": {"levels": levels}, **others}:
            return {"levels": dict(levels), **with_levels(others)}
        case {"levels": levels}:
            return dict(levels)
        case dict():
            return {name: with_levels(each) for name, each in value.items()}
        case list() | tuple():
            return [with_levels(each) for each in value]
    return value


def with_settings(value: Any) -> Any:
    """Plain values of a file, with settings in place of mappings of levels: to be converted from attributes."""
    match value:
        case {"levels": levels, **others}:
            return {"setting": with_settings(levels), **others}
        case {"transport": _}:
            return setting(**value)
        case dict():
            return {name: with_settings(each) for name, each in value.items()}
        case list():
            return [with_settings(each) for each in value]
    return value
