"""Unknown keys of rules that stand in the wrong place: parameters of a template beside `use`, not under `with`."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import SequenceMatcher
from typing import Any

from camgraph.pipeline.graph.explain import shown
from camgraph.pipeline.system.spelling import did_you_mean_key, nearest
from camgraph.stages.rules.fault import KeyPath
from camgraph.stages.rules.library import library
from camgraph.stages.rules.rule_file import KEYS_OF_RULES, RuleFile, is_word

_SURE = 0.75
"""A key so near to one of a rule is a misspelling of that."""


class WrittenRules(RuleFile):
    """A file of rules as people write it: mistakes in keys get a hint."""

    @classmethod
    def hint_at_key(cls, data: Any, path: KeyPath) -> str:
        return hint_at_key(data, path)


def hint_at_key(data: Any, path: KeyPath) -> str:
    """What to do about an unknown key of a rule, or of its `per_camera`; "" if it is no matter of templates."""
    key, use = str(path[-1]), _template_named(data, path)
    if not use or not is_word(key):
        return ""
    parameters = _parameters(data, use)
    if key in parameters:
        return f": it is a parameter of `{use}`: write {_under_with(key, data, path)}"
    if not parameters or _is_misspelt(key):
        return ""
    if near := nearest(key, parameters):
        return f": `{use}` has a parameter `{near[0]}`: write {_under_with(near[0], data, path)}"
    if did_you_mean_key(key, KEYS_OF_RULES) and not any(key in one.parameters for one in library().templates.values()):
        return ""
    return (
        f": a rule has no such key, and `{use}` has no such parameter; its parameters, which stand under `with`, are "
        f"{', '.join(parameters)}"
    )


def stands_beside_use(data: Any, path: KeyPath) -> bool:
    """Whether the value that a template lacks, as at `rules[0].with.zone`, stands beside `use` instead."""
    if len(path) != 4 or path[0] != "rules" or path[2] != "with":
        return False
    rule = _at(data, path[:2])
    return isinstance(rule, Mapping) and path[3] in rule and path[3] not in KEYS_OF_RULES


def _template_named(data: Any, path: KeyPath) -> str:
    """The template of the rule that a key stands in; "" if there is none."""
    if path[0] != "rules" or not (len(path) == 3 or (len(path) == 5 and path[2] == "per_camera")):
        return ""
    rule = _at(data, path[:2])
    use = rule.get("use") if isinstance(rule, Mapping) else None
    return use if isinstance(use, str) else ""


def _parameters(data: Any, use: str) -> list[str]:
    """Those of a template of the file, or else of the library."""
    own = _at(data, ("templates", use))
    if isinstance(own, Mapping):
        found = own.get("parameters")
        return [str(name) for name in found] if isinstance(found, Mapping) else []
    shipped = library().templates.get(use)
    return list(shipped.parameters) if shipped else []


def _under_with(name: str, data: Any, path: KeyPath) -> str:
    value = _at(data, path)
    written = shown(value) if isinstance(value, bool) else value if isinstance(value, str | int | float) else "..."
    return f"`with: {{{name}: {written!s:.40}}}`"


def _is_misspelt(key: str) -> bool:
    """Whether it surely is a misspelt key of a rule."""
    near = nearest(key, KEYS_OF_RULES)
    return bool(near) and (sorted(near[0]) == sorted(key) or SequenceMatcher(None, key, near[0]).ratio() > _SURE)


def _at(data: Any, path: KeyPath) -> Any:
    for part in path:
        if isinstance(data, list) and isinstance(part, int) and part < len(data):
            data = data[part]
        else:
            data = data.get(part) if isinstance(data, Mapping) else None
    return data
