"""Rules made of templates: their keys put together, with the way back from a mistake to the text that somebody wrote.

    rule {use, with, own keys} + template {when: "in {zone}", for: "{stay}"} --made--> rule {id, when, for, ...}

The template gives the keys, the rule overrides them, and what a rule has `per_camera` overrides both.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from camgraph.pipeline.graph.explain import plainly
from camgraph.pipeline.system.spelling import did_you_mean, nearest
from camgraph.stages.rules.fault import Fault, KeyPath
from camgraph.stages.rules.parameters import (
    SOME_LINE,
    SOME_ZONE,
    Filled,
    filled,
    kind_of,
    put_in,
    stand_in,
    written,
    wrong_value,
)
from camgraph.stages.rules.rule_file import (
    KEYS_OF_RULES,
    NO_ID,
    PLACEHOLDER,
    UNKNOWN,
    Override,
    ParameterKind,
    ParameterValue,
    RuleDefinition,
    TemplateDefinition,
)

CONDITIONS = ("when", "until", "who")
_OF_TEMPLATE_ALONE = {"parameters"}
_OF_RULE_ALONE = {"use", "with_", "per_camera"}
_SHOWN = 8


@dataclass(frozen=True, slots=True)
class Template:
    """A template by its name; `path`: where it stands in the file, None for one of the library."""

    name: str
    definition: TemplateDefinition
    path: KeyPath | None = None
    sound: bool = True
    """Whether it has no mistake of its own, so that a mistake in a rule made of it is that rule's."""

    @property
    def in_words(self) -> str:
        return f"the {'template' if self.path else 'action'} `{self.name}`"


@dataclass(frozen=True, slots=True)
class MadeRule:
    """A whole rule, and the sources of its conditions."""

    definition: RuleDefinition
    path: KeyPath
    template: Template | None = None
    texts: Mapping[str, Filled] = field(default_factory=dict)
    """Key -> its condition, if the template gave it."""
    given: Mapping[str, KeyPath] = field(default_factory=dict)
    """Parameter -> where the rule gives its value."""
    places: Mapping[str, KeyPath] = field(default_factory=dict)
    """Key -> where its value stands, if that is not the rule itself."""

    def fault(self, key: str, text: str, offset: int) -> Fault | None:
        """A mistake in a condition, where it was written. None if it is the template's, and has been reported there."""
        if key not in self.texts or self.template is None:
            return Fault(self.places.get(key, (*self.path, key)), text, offset)
        message = f"{text} (in `{key}` of {self.template.in_words})"
        found = self.texts[key].parameter_at(offset)
        if found and found[0] in self.given:
            return Fault(self.given[found[0]], message, also=self.template.path)
        return Fault((*self.path, "use"), message, also=self.template.path) if self.template.sound else None


def made_rule(
    rule: RuleDefinition,
    path: KeyPath,
    templates: Mapping[str, Template],
    *,
    zones: Collection[str],
    lines: Collection[str],
    override: tuple[KeyPath, Override] | None = None,
) -> tuple[MadeRule | None, list[Fault]]:
    """The whole rule, and the mistakes in its use of the template. `override`: of a camera, and where it stands."""
    own = _keys(rule, _OF_RULE_ALONE)
    places: dict[str, KeyPath] = {}
    with_, given = dict(rule.with_), {name: (*path, "with", name) for name in rule.with_}
    if override is not None:
        at, keys = override
        more = keys.with_
        own |= _keys(keys, _OF_RULE_ALONE)
        places = {key: (*at, key) for key in _keys(keys, _OF_RULE_ALONE)}
        with_ |= more
        given |= {name: (*at, "with", name) for name in more}
    if rule.use is None:
        return _plain(rule, path, own, given, places)
    template = templates.get(rule.use)
    if template is None:
        return None, [Fault((*path, "use"), _no_template(rule.use, templates))]
    faults = list(_wrong_values(template, with_, given, path, zones=zones, lines=lines))
    if faults or template.definition.when == UNKNOWN:
        return None, faults
    made, texts = _filled_keys(template, with_)
    texts = {key: text for key, text in texts.items() if key not in own}
    places = {**{key: _of_template(template, key, given, path) for key in made if key not in own}, **places}
    definition, fault = _whole({"id": rule.use, **made, **own}, (*path, "use"), template)
    return (MadeRule(definition, path, template, texts, given, places) if definition else None), fault


def _no_template(name: str, templates: Mapping[str, Template]) -> str:
    text = f"there is no action or template `{name[:40]}`"
    telling = [one for one in templates if _words_of(one)]  # `somebody_falls` is no `somebody`
    if guess := did_you_mean(name, telling) or _like_parts_of(name, telling) or did_you_mean(name, templates):
        return f"{text}{guess} (`camgraph actions` lists the actions)"
    own = [one.name for one in templates.values() if one.path]
    listed = ", ".join(own[:_SHOWN]) + (", ..." if len(own) > _SHOWN else "")
    return f"{text}{f'; templates of this file: {listed};' if own else ':'} `camgraph actions` lists the actions"


def _like_parts_of(name: str, known: Iterable[str]) -> str:
    """`; did you mean `fall`?` for `somebody_falls`: the known name that has most words of a name, or nothing."""
    words = _words_of(name)

    def alike(one: str) -> int:
        return sum(any(a.startswith(b) or b.startswith(a) for b in _words_of(one)) for a in words)

    best = max(known, key=lambda one: (alike(one), -len(one)), default="")
    return f"; did you mean `{best}`?" if best and alike(best) else ""


_LEAST_LETTERS = 3
_SAYS_LITTLE = frozenset({"somebody", "person", "people", "one", "too", "there", "way", "while", "the"})


def _words_of(name: str) -> list[str]:
    parts = re.split(r"[\W_]+", name.lower())
    return [part for part in parts if len(part) >= _LEAST_LETTERS and part not in _SAYS_LITTLE]


def _of_template(template: Template, key: str, given: Mapping[str, KeyPath], path: KeyPath) -> KeyPath:
    """Where a rule has the value of a key that its template gives: at a parameter, or where it names the template."""
    found = PLACEHOLDER.fullmatch(str(_keys(template.definition, _OF_TEMPLATE_ALONE).get(key)))
    return given.get(found[1] if found else "", (*path, "use"))


def _plain(
    rule: RuleDefinition,
    path: KeyPath,
    own: Mapping[str, Any],
    given: Mapping[str, KeyPath],
    places: Mapping[str, KeyPath],
) -> tuple[MadeRule | None, list[Fault]]:
    missing = [key for key in ("id", "when") if not getattr(rule, key)]
    faults = [Fault(path, _missing(key)) for key in missing]
    if given:
        at = next(iter(given.values()))[:-1]
        faults.append(Fault(at, "`with` has values for a template: name it under `use`"))
    if "when" in missing:
        return None, faults
    definition, wrong = _whole({"id": NO_ID, **own}, path, None)
    return (MadeRule(definition, path, places=places) if definition else None), [*faults, *wrong]


def _missing(key: str) -> str:
    described = RuleDefinition.model_fields[key].description or ""
    return f"`{key}` is missing: {described}"


def _keys(model: Any, without: set[str]) -> dict[str, Any]:
    """The keys that somebody wrote, by their names in a file."""
    return dict(model.model_dump(by_alias=True, exclude_unset=True, exclude=without))


def _whole(
    keys: Mapping[str, Any], path: KeyPath, template: Template | None
) -> tuple[RuleDefinition | None, list[Fault]]:
    try:
        return RuleDefinition.model_validate(dict(keys)), []
    except ValidationError as error:
        where = f" (in {template.in_words})" if template else ""
        also = template.path if template else None
        return None, [Fault(path, plainly(error, dict(keys)) + where, also=also)]


def _wrong_values(
    template: Template,
    with_: Mapping[str, ParameterValue],
    given: Mapping[str, KeyPath],
    path: KeyPath,
    *,
    zones: Collection[str],
    lines: Collection[str],
) -> Iterator[Fault]:
    """Parameters that the template does not have, that lack a value, or that have a wrong one."""
    parameters = template.definition.parameters
    misspelt = {near for name in with_.keys() - parameters.keys() for near in nearest(name, parameters)}
    for name, value in with_.items():
        if name not in parameters:
            yield _no_parameter(template, name, given[name])
        elif wrong := wrong_value(kind_of(parameters[name]), value, zones, lines):
            kind = kind_of(parameters[name])
            section = f"{kind}s" if kind in ("zone", "line") else ""
            yield Fault(given[name], f"{wrong} (for {template.in_words})", also=template.path, section=section)
    for name, parameter in parameters.items():
        if name in with_ or name in misspelt or parameter.default is not None:
            continue
        about = f": {parameter.about[:1].lower()}{parameter.about[1:]}" if parameter.about else ""
        text = f"{template.in_words} needs `with: {{{name}: ...}}`, {_A_KIND[kind_of(parameter)]}{about}"
        yield Fault((*path, "with", name), text, also=template.path)


def _no_parameter(template: Template, name: str, path: KeyPath) -> Fault:
    if name in KEYS_OF_RULES:
        return Fault(path, f"`{name}` is a key of the rule: write it beside `with`, not under it")
    parameters = template.definition.parameters
    guess = did_you_mean(name, parameters)
    listed = f"; it has {', '.join(parameters)}" if parameters else "; it has none"
    return Fault(path, f"{template.in_words} has no parameter `{name[:40]}`{guess or listed}", also=template.path)


_A_KIND: Mapping[ParameterKind, str] = {
    "time": "a time",
    "length": "a length",
    "angle": "an angle",
    "speed": "a speed",
    "rate": "a rate",
    "number": "a number",
    "zone": "the name of a zone",
    "line": "the name of a line",
    "name": "a name",
    "condition": "a condition",
    "switch": "true or false",
}


def _filled_keys(
    template: Template, with_: Mapping[str, ParameterValue], stand_ins: bool = False
) -> tuple[dict[str, Any], dict[str, Filled]]:
    """The keys of a template with its parameters put in, and its conditions with the places of these."""
    values = {
        name: (
            kind_of(parameter),
            written(with_[name]) if name in with_ else stand_in(parameter) if stand_ins else written(parameter.default),
        )
        for name, parameter in template.definition.parameters.items()
    }

    def fill(text: str) -> str:
        return PLACEHOLDER.sub(lambda found: values[found[1]][1] if found[1] in values else found[0], text)

    keys = _keys(template.definition, _OF_TEMPLATE_ALONE)
    texts = {key: filled(keys[key], values) for key in CONDITIONS if keys.get(key)}
    made = {key: put_in(value, fill) for key, value in keys.items() if key not in texts}
    return {**made, **{key: text.text for key, text in texts.items()}}, texts


# ---- templates by themselves


@dataclass(frozen=True, slots=True)
class Trial:
    """A template with stand-ins for its values, to be compiled by itself; the zones and lines that it may name."""

    definition: RuleDefinition
    texts: Mapping[str, Filled]
    zones: frozenset[str] = frozenset({SOME_ZONE})
    lines: frozenset[str] = frozenset({SOME_LINE})


def trial_of(template: Template) -> tuple[Trial | None, list[Fault]]:
    """A rule made of the template and its defaults, and the mistakes in its parameters."""
    assert template.path is not None
    definition = template.definition
    faults = [*_wrong_defaults(template), *_unknown_parameters(template)]
    if faults or definition.when == UNKNOWN:
        return None, faults
    keys, texts = _filled_keys(template, {}, stand_ins=True)
    for key in ("for", "hold", "cooldown", "gap", "lost_after", "merge", "update"):
        found = PLACEHOLDER.fullmatch(_keys(definition, _OF_TEMPLATE_ALONE).get(key) or "")
        if found and (kind := kind_of(definition.parameters[found[1]])) != "time":
            faults.append(Fault((*template.path, key), f"`{found[1]}` is {_A_KIND[kind]}, and `{key}` takes a time"))
    if faults:
        return None, faults
    whole, faults = _whole({"id": template.name, **keys}, template.path, None)
    return (Trial(whole, texts) if whole else None), faults


def _wrong_defaults(template: Template) -> Iterator[Fault]:
    assert template.path is not None
    for name, parameter in template.definition.parameters.items():
        kind = kind_of(parameter)
        if parameter.default is None or kind in ("zone", "line"):
            continue
        if wrong := wrong_value(kind, parameter.default, (), ()):
            yield Fault((*template.path, "parameters", name), wrong)


def _unknown_parameters(template: Template) -> Iterator[Fault]:
    """Placeholders without a parameter, and parameters that stand nowhere."""
    assert template.path is not None
    parameters = template.definition.parameters
    used = set()
    for key, value in _keys(template.definition, _OF_TEMPLATE_ALONE).items():
        for found in PLACEHOLDER.finditer(value) if isinstance(value, str) else ():
            used.add(found[1])
            if found[1] not in parameters:
                guess = did_you_mean(found[1], parameters) or f": name it under `parameters` of `{template.name}`"
                offset = found.start() if key in CONDITIONS else None
                yield Fault((*template.path, key), f"there is no parameter `{found[1]}`{guess}", offset)
    for name in parameters.keys() - used if template.definition.when != UNKNOWN else ():
        text = f"the parameter `{name}` stands in no key of `{template.name}`: write {{{name}}} there, or remove it"
        yield Fault((*template.path, "parameters", name), text)
