"""Every mistake is told, all of them at once, each with its line, its column and a way out."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import yaml
from camgraph_test_stages.events import CollectEvents, CollectEventsSettings
from camgraph_test_stages.source import CountCamera, CountSource
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from camgraph.pipeline.errors import EnvironmentProblem, GraphError, UserError
from camgraph.pipeline.graph import load_graph, parse_graph
from camgraph.pipeline.graph.shared_memory import memory_need
from camgraph.pipeline.system.names import ascii_form

Mistakes = Callable[..., list[str]]

MANY = """\
version: 2
procesess: separate
cameras:
  front: {frames: many, fail: "${WHY}"}
  yard: {frmaes: 10}
  "日 本": {}
  front: {frames: 3}
stages:
  count: {use: count_source, threads: 2}
  model: {use: nul_model, from: count}
  slow: {use: double, from: count, threads: 4, batch: {max: 0}}
  sum: {use: running_sum, from: [slow, twise]}
  twice: {use: double, from: count}
  both: {use: pair, from: {left: sum, rihgt: twice}}
  ring: {use: double, from: ring2}
  ring2: {use: double, from: ring}
  actions: {use: emit, from: sum, with: {every: none, of: 3}}
  log: {use: collect_events, from: sum, with: {path: on}}
  late: {use: collect_events, from: {stage: actions, policy: drop_old}, with: {path: x, order: tim}}
  alone: {use: double}
  second: {use: count_source, from: count}
  mail: {use: sink_mail, from: events}
"""

EXPECTED = """\
1:10: version: expected 1, got 2
2:1: the graph: unknown key `procesess`; did you mean `processes`?
4:19: cameras.front.frames: expected a whole number, got 'many'
4:31: the environment variable WHY is not set: set it, name a file that does (--env-file), or write \
${secret:WHY} for a secret of this name, $${WHY} for the text itself
5:10: cameras.yard: unknown key `frmaes`; did you mean `frames`?
6:3: cameras: expected a name of letters of any script, digits, `_` and `-` (at most 40 characters and 120 bytes), got \
`日 本`; did you mean `日-本`?
7:3: the key `front` appears twice, first in line 4: remove one of them
9:30: stages.count.threads: count is a source: every camera has a thread already; remove `threads`
10:16: stages.model.use: no stage is called `nul_model`; did you mean `null_model`?
11:45: stages.slow.threads: double is not safe in several threads: expected 1; use `workers` instead
11:61: stages.slow.batch.max: expected 1 or more, got 0
12:40: stages.sum.from[1]: no stage of this graph is called `twise`; did you mean `twice`?
14:27: stages.both.from: the port `right` is missing; it takes Number
14:39: stages.both.from: both has no port `rihgt`; did you mean `right`?
15:29: stages.ring.from: a loop: ring > ring2 > ring; a frame would never leave it
17:49: stages.actions.with.every: expected a whole number, got 'none'
17:55: stages.actions.with: unknown key `of`; known: every
18:36: stages.log.from: log takes Event, and sum makes Number; Event is made by actions
18:54: `on` is a boolean to some readers of YAML: write true, false, or "on" in quotes
19:62: stages.late.from.policy: expected one of 'block', 'drop_oldest' or 'drop_newest', got 'drop_old'; did you mean \
`drop_oldest`?
19:96: stages.late.with.order: expected one of 'arrival' or 'time', got 'tim'; did you mean `time`?
20:3: stages.alone: `from` is missing: where does it get its Number?
21:3: stages.second: count is the source already, and a graph has one: remove this stage
21:31: stages.second.from: second is a source and reads from no stage: remove `from`
22:15: stages.mail.use: no stage is called `sink_mail`; did you mean `sink_email`?
"""


def test_two_dozen_mistakes_are_told_at_once(mistakes: Mistakes) -> None:
    assert "\n".join(mistakes(MANY)) + "\n" == EXPECTED


CAMERA_NAME = (
    "cameras: expected a name of letters of any script, digits, `_` and `-` (at most 40 characters and 120 bytes), got "
)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Süd/Ost", "`Süd/Ost`; did you mean `Süd-Ost`?"),
        (" вход 2", "` вход 2`; did you mean `вход-2`?"),
        ("-入口", "`-入口`; did you mean `入口`?"),
        ("!?", "`!?`"),
        ("a\u200db", r"`a\u200db`; did you mean `a-b`?"),
        ("a\u202eb", r"`a\u202eb`; did you mean `a-b`?"),
        ("\u0308a", "`\u0308a`; did you mean `a`?"),
        ("入" * 41, f"`{'入' * 41}`"),
        ("𐐀" * 31, f"`{'𐐀' * 31}`; did you mean `{'𐐀' * 30}`?"),
    ],
)
def test_names_that_no_camera_can_have(mistakes: Mistakes, name: str, message: str) -> None:
    assert mistakes(RIGHT.replace("front:", f'"{name}":')) == [f"4:3: {CAMERA_NAME}{message}"]


@pytest.mark.parametrize("name", ["Süd", "вход", "入口", "مدخل", "प्रवेश", "٣", "_", "Su\u0308d", "入" * 40])
def test_cameras_are_called_in_any_script(mistakes: Mistakes, name: str) -> None:
    assert mistakes(RIGHT.replace("front:", f'"{name}":')) == []


def test_two_cameras_with_one_ascii_form_are_refused(mistakes: Mistakes, parse: Any) -> None:
    form = ascii_form("Süd")
    message = f"have the same ASCII form `{form}`, for paths and addresses: rename one"
    text = RIGHT.replace("front:", "Süd:").replace("yard:", f"{form}:")
    assert mistakes(text) == [f"5:3: cameras: `{form}` and `Süd` {message}"]
    text = RIGHT.replace("front:", f"{form}:")
    with pytest.raises(GraphError, match=f"g.yaml:4:3: cameras: `{form}` and `Süd` {message}"):
        parse(text, further=["Süd"])


RIGHT = """\
version: 1
name: lobby
cameras:
  front: {frames: 3}
  yard: {frames: 3}
stages:
  count: {use: count_source}
  model: {use: null_model, from: count, batch: {max: 8}}
  actions: {use: emit, from: model}
  log: {use: collect_events, from: actions, with: {path: x}}
"""


UNREAD = "7:3: stages.count: no stage reads its Number: name it in the `from` of a stage, or remove it"


def test_a_right_graph_has_no_mistakes(mistakes: Mistakes) -> None:
    assert mistakes(RIGHT) == []


@pytest.mark.parametrize(
    ("right", "wrong", "expected"),
    [
        ("version: 1\n", "", ["1:1: `version` is missing: The version of this file format: 1."]),
        ("name: lobby", "name: 5", ['2:7: name: expected text, got 5; write "5" with quotes']),
        (
            "name: lobby",
            "processes: on",
            ['2:12: `on` is a boolean to some readers of YAML: write true, false, or "on" in quotes'],
        ),
        ("name: lobby", "hang_s: 0", ["2:9: hang_s: expected 1 or more, got 0"]),
        (
            "with: {path: x}",
            "with: {path: x, workers: 2}",
            ["10:61: stages.log.with: `workers` is no setting: it stands beside `use`, not under `with`"],
        ),
        ("name: lobby", "drain_s: [1]", ["2:10: drain_s: expected a number, got a list of 1"]),
        ("name: lobby", "camera_defaults: {fsp: 3}", ["2:19: camera_defaults: unknown key `fsp`; did you mean `fps`?"]),
        ("name: lobby", "camera_defaults: {fps: 0}", ["2:24: camera_defaults.fps: expected more than 0, got 0"]),
        (
            "cameras:\n  front: {frames: 3}\n  yard: {frames: 3}\n",
            "cameras: {}\n",
            ["3:1: cameras: there is none: expected at least one `name: {...}`"],
        ),
        (
            "{frames: 3}\n  yard",
            "{priority: 0}\n  yard",
            ["4:21: cameras.front.priority: expected 1 or more, got 0"],
        ),
        (
            "{frames: 3}\n  yard",
            "{priority: 101}\n  yard",
            ["4:21: cameras.front.priority: expected 100 or less, got 101"],
        ),
        ("{frames: 3}\n  yard", "5\n  yard", ["4:10: cameras.front: expected `key: value` lines, got 5"]),
        (
            "use: count_source",
            "uses: count_source",
            [
                "7:3: stages.count: `use` is missing: The stage to run; `camgraph stages` lists them.",
                "7:11: stages.count: unknown key `uses`; did you mean `use`?",
            ],
        ),
        ("use: count_source", "use: ", ["7:16: stages.count.use: expected text, got nothing"]),
        (
            "use: count_source",
            "use: outbox",
            ["7:16: stages.count.use: camgraph adds the outbox to every graph with events: remove this stage"],
        ),
        (
            "{use: count_source}",
            "count_source",
            ["7:10: stages.count: expected `key: value` lines, got 'count_source'"],
        ),
        (
            "count_source}",
            "count_source, each: cameras, workers: 2}",
            [
                "7:45: stages.count.workers: count is a source: with `each: cameras` it has a "
                "process per camera; remove one of the two"
            ],
        ),
        (
            "count_source}",
            "count_source, workers: 2, cameras_per_process: 4}",
            [
                "7:42: stages.count.cameras_per_process: count is a source: with `workers` its cameras are distributed "
                "already; remove one of the two"
            ],
        ),
        (
            "null_model, from",
            "null_model, cameras_per_process: 2, from",
            [
                "8:28: stages.model.cameras_per_process: is for sources; `workers: N` deals "
                "the cameras among N processes"
            ],
        ),
        (
            "count_source}",
            "count_source, batch: {}}",
            ["7:30: stages.count.batch: count is a source: it makes one message at a time; remove `batch`"],
        ),
        (
            "model, from: count",
            "model, from: cuont",
            ["8:34: stages.model.from: no stage of this graph is called `cuont`; did you mean `count`?"],
        ),
        ("model, from: count", "model, form: count", ["8:28: stages.model: unknown key `form`; did you mean `from`?"]),
        (
            "model, from: count",
            "model, from: 5",
            ["8:34: stages.model.from: expected a stage's name, a list of them, or `port: stage` lines, got 5"],
        ),
        (
            "model, from: count",
            "model, from: []",
            ["8:34: stages.model.from: expected 1 or more items, got a list of 0"],
        ),
        (
            "model, from: count",
            "model, from: [count, count]",
            ["8:42: stages.model.from[1]: `count` appears twice: remove one of them"],
        ),
        (
            "model, from: count",
            "model, from: {stgae: count}",
            [
                "8:34: stages.model.from: model has one input, without ports (got stgae); did you "
                "mean `stage`?; expected a stage's name or a list of them"
            ],
        ),
        (
            "model, from: count",
            "model, from: {stage: count, depth: 0}",
            ["8:56: stages.model.from.depth: expected 1 or more, got 0"],
        ),
        (
            "model, from: count",
            "model, from: [{stage: count, dept: 0}]",
            ["8:50: stages.model.from[0]: unknown key `dept`; did you mean `depth`?"],
        ),
        (
            "model, from: count",
            "model, from: actions",
            [UNREAD, "8:34: stages.model.from: model takes Number, and actions makes Event; Number is made by count"],
        ),
        (
            "model, from: count",
            "model, from: log",
            [UNREAD, "8:34: stages.model.from: model takes Number, and log makes nothing; Number is made by count"],
        ),
        (
            "model, from: count",
            "model, from: model",
            [UNREAD, "8:34: stages.model.from: a loop: model > model; a frame would never leave it"],
        ),
        (
            "model, from: count",
            "model, from: events",
            [UNREAD, "8:34: stages.model.from: `events` means Events, but model takes none"],
        ),
        (
            "null_model, from",
            "null_model, each: cameras, from",
            [
                "8:28: stages.model.each: only a source has a copy per camera; `workers: N` deals "
                "the cameras among N processes"
            ],
        ),
        (
            "batch: {max: 8}",
            "batch: {wait_ms: 5}",
            [
                "8:58: stages.model.batch.wait_ms: nothing waits for a batch of one: set `max` to 2 "
                "or more, or remove `wait_ms`"
            ],
        ),
        ("batch: {max: 8}", "with: {cost_ms: .nan}", ["8:57: stages.model.with.cost_ms: expected 0 or more, got nan"]),
        (
            "use: emit, from: model",
            "use: pair, from: model",
            [
                "9:30: stages.actions.from: actions joins by frame; expected {left: STAGE, right: STAGE}",
                "10:36: stages.log.from: log takes Event, and actions makes Number",
            ],
        ),
        (
            "from: actions, with",
            "from: [events, actions], with",
            ["10:37: stages.log.from[0]: `events` means actions as well: keep one of them"],
        ),
        (
            "from: actions, with",
            "from: {stage: actions, policy: drop_oldest}, with",
            ["10:61: stages.log.from.policy: edges that carry Events always block: remove `policy`"],
        ),
        (
            "with: {path: x}",
            "workers: 2, with: {path: x}",
            ["10:54: stages.log.workers: an event sink takes all cameras' events in one line: expected 1"],
        ),
        (", with: {path: x}", "", ["10:3: stages.log: `path` is missing: A file; lines are appended."]),
        ("with: {path: x}", "with: [x]", ["10:51: stages.log.with: expected `key: value` lines, got a list of 1"]),
        ("  log:", "  events:", ["10:3: a stage cannot be called `events`: it means all stages that make events"]),
        (
            "  log:",
            "  a.b:",
            [
                "10:3: stages: expected a name of letters, digits, `_` and `-` (at most 40 characters), got `a.b`; "
                "did you mean `a-b`?"
            ],
        ),
        (
            "  log:",
            "  Sortie Été:",
            [
                "10:3: stages: expected a name of letters, digits, `_` and `-` (at most 40 characters), "
                "got `Sortie Été`; did you mean `Sortie-Ete`?"
            ],
        ),
        (
            "  log:",
            "  出口:",
            ["10:3: stages: expected a name of letters, digits, `_` and `-` (at most 40 characters), got `出口`"],
        ),
        (
            "  log:",
            f"  {'x' * 500}:",
            [
                "10:3: stages: expected a name of letters, digits, `_` and `-` (at most 40 characters), "
                f"got `{'x' * 60}...`"
            ],
        ),
        (
            "  log: {use: collect_events, from: actions, with: {path: x}}\n",
            "",
            ["9:3: stages.actions: no stage reads its Event: name it in the `from` of a stage, or remove it"],
        ),
    ],
)
def test_one_mistake_is_told_once(mistakes: Mistakes, right: str, wrong: str, expected: list[str]) -> None:
    assert right in RIGHT
    assert mistakes(RIGHT.replace(right, wrong, 1)) == expected


@pytest.mark.parametrize("name", ["a/b", "", "x" * 41, "name\n"])
def test_a_run_needs_a_name(parse: Callable[..., Any], name: str) -> None:
    with pytest.raises(UserError, match="cannot be the name of a run: expected a name of letters"):
        parse(RIGHT, name=name)


def test_a_sink_needs_somebody_who_makes_events(mistakes: Mistakes) -> None:
    text = RIGHT.replace("emit, from: model", "double, from: model").replace("from: actions", "from: events")
    assert mistakes(text) == [
        "9:3: stages.actions: no stage reads its Number: name it in the `from` of a stage, or remove it",
        "10:36: stages.log.from: no stage of this graph makes Events",
    ]


def test_there_must_be_a_source(mistakes: Mistakes) -> None:
    text = "version: 1\ncameras: {a: }\nstages:\n  s: {use: double, from: t}\n  t: {use: double, from: s}\n"
    assert mistakes(text) == [
        "3:1: no stage is a source: expected one such as `capture: {use: capture}`",
        "4:26: stages.s.from: a loop: s > t > s; a frame would never leave it",
    ]


def test_live_cameras_and_files_need_a_word_on_who_waits(mistakes: Mistakes) -> None:
    text = RIGHT.replace("yard: {frames: 3}", "yard: {live: true}")
    assert mistakes(text) == [
        "8:34: stages.model.from: live cameras (yard) and files (front) share this edge: use two graphs, or write "
        "{stage: count, policy: block} (live frames may grow old) or `policy: drop_oldest` (frames "
        "of files may be lost)"
    ]
    assert mistakes(text.replace("from: count", "from: {stage: count, policy: drop_oldest}")) == []


def test_the_value_of_a_variable_is_never_told(mistakes: Mistakes) -> None:
    text = RIGHT.replace("front: {frames: 3}", 'front: {frames: "${N}", fps: "${N}", fail: "rtsp://u:pw@h"}').replace(
        "use: null_model", 'use: "${N}"'
    )
    found = mistakes(text, {"N": "hunter2"})
    assert found[0] == "4:19: cameras.front.frames: expected a whole number, got '${N}'"
    assert len(found) == 3
    assert "hunter2" not in "".join(found)


def test_files_are_looked_at_even_where_other_keys_are_wrong(
    mistakes: Mistakes, monkeypatch: pytest.MonkeyPatch
) -> None:
    def check(settings: CollectEventsSettings, folder: Path) -> Iterator[tuple[tuple[str, ...], str]]:
        yield ("path",), f"{settings.path}: no such folder"
        yield ("order",), "what has been complained about is not complained about again"

    def check_camera(settings: CountCamera, folder: Path) -> Iterator[tuple[tuple[str, ...], str]]:
        if settings.fail:
            raise EnvironmentProblem(f"cannot ask rtsp://me:{settings.fail}@host, whose password is {settings.fail}")
        yield from ()

    monkeypatch.setattr(CollectEvents, "check", check)
    monkeypatch.setattr(CountSource, "check_camera", check_camera)
    text = RIGHT.replace("path: x}", "path: x, order: tiem}").replace("{frames: 3}", '{frames: x, fail: "${PW}"}', 1)
    assert mistakes(text, {"PW": "hunter2"}) == [
        "4:10: cameras.front: cannot ask rtsp://***@host, whose password is ${PW}",
        "4:19: cameras.front.frames: expected a whole number, got 'x'",
        "10:58: stages.log.with.path: x: no such folder",
        "10:68: stages.log.with.order: expected one of 'arrival' or 'time', got 'tiem'; did you mean `time`?",
    ]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (None, "g.yaml: cannot be read: No such file or directory: expected a graph file"),
        (b"a: \xff", "g.yaml: not UTF-8 at byte 3: expected a YAML file in UTF-8"),
        (b"- a", "g.yaml:1:1: expected `key: value` lines: version, cameras and stages"),
        (b"5", "g.yaml:1:1: expected `key: value` lines: version, cameras and stages"),
    ],
)
def test_a_file_that_is_no_graph(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes | None, expected: str
) -> None:
    monkeypatch.chdir(tmp_path)
    if content is not None:
        Path("g.yaml").write_bytes(content)
    with pytest.raises(GraphError) as caught:
        load_graph("g.yaml")
    assert str(caught.value) == expected


def test_a_device_is_no_graph_and_is_not_read() -> None:
    with pytest.raises(GraphError, match=r"^/dev/zero: is a device: expected a graph file$"):
        load_graph("/dev/zero")


# ---- whatever is in the file, there is no traceback

_WORDS = [
    "version", "name", "processes", "cameras", "camera_defaults", "stages", "use", "from", "with", "each", "workers",
    "cameras_per_process",
    "threads", "batch", "max", "wait_ms", "group", "stage", "depth", "policy", "count_source", "double", "pair", "emit",
    "collect_events", "left", "right", "events", "count", "model", "front", "one", "compact", "live", "frames",
]  # fmt: skip
_values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 100) | st.floats() | st.sampled_from(_WORDS) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_WORDS), inner, max_size=4),
    max_leaves=8,
)


def _parsed_or_refused(data: Any, folder: Path) -> None:
    text = yaml.safe_dump(data, allow_unicode=True)
    try:
        parse_graph(text, "g.yaml", base_folder=folder, environ={})
    except GraphError as error:
        problems = error.problems
    else:
        return
    assert problems
    assert all(0 <= problem.line <= text.count("\n") + 1 for problem in problems)


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(_values)
def test_garbage_is_refused_with_places(tmp_path: Path, data: Any) -> None:
    _parsed_or_refused(data, tmp_path)


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(0, 60), _values), min_size=1, max_size=3))
def test_a_graph_with_garbage_in_it_is_refused_with_places(tmp_path: Path, changes: list[tuple[int, Any]]) -> None:
    data = yaml.safe_load(RIGHT)
    for place, value in changes:
        spots = list(_spots(data))
        holder, key = spots[place % len(spots)]
        holder[key] = value
    _parsed_or_refused(data, tmp_path)


def _spots(value: Any) -> Any:
    for key in list(value) if isinstance(value, dict) else range(len(value)):
        yield value, key
        if isinstance(value[key], dict | list):
            yield from _spots(value[key])


def large(cameras: int, stages: int) -> str:
    """Live cameras, and a chain of stages."""
    return "\n".join(
        [
            "version: 1",
            "cameras:",
            *(f"  c{number}: {{frames: 3, live: true}}" for number in range(cameras)),
            "stages:",
            "  s0: {use: count_source}",
            *(f"  s{number}: {{use: double, from: s{number - 1}}}" for number in range(1, stages - 2)),
            f"  actions: {{use: emit, from: s{stages - 3}}}",
            "  log: {use: collect_events, from: actions, with: {path: x}}",
        ]
    )


def calls_of(text: str, folder: Path) -> int:
    """How many functions of ours are called to check a graph: the same on every machine."""
    calls = 0

    def count(frame: FrameType, event: str, _: Any) -> None:
        nonlocal calls
        calls += event == "call"

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        graph = parse_graph(text, "g.yaml", base_folder=folder, environ={})
        memory_need(graph)
    finally:
        sys.setprofile(before)
    return calls


@pytest.mark.parametrize(("small", "big"), [((50, 5), (400, 5)), ((2, 25), (2, 200)), ((100, 20), (200, 40))])
def test_parsing_time_is_linear(tmp_path: Path, small: tuple[int, int], big: tuple[int, int]) -> None:
    calls_of(large(2, 5), tmp_path)
    growth = sum(big) / sum(small)
    assert calls_of(large(*big), tmp_path) < 1.5 * growth * calls_of(large(*small), tmp_path)


@pytest.mark.parametrize(
    ("cameras", "stages", "expected"),
    [
        (10_001, 3, "2:1: cameras: 10,001, expected at most 10,000: make several graphs of it"),
        (1, 1_001, "4:1: stages: 1,001, expected at most 1,000: make several graphs of it"),
    ],
)
@pytest.mark.slow
def test_a_graph_beyond_all_sizes_is_one_clear_mistake(
    mistakes: Mistakes, cameras: int, stages: int, expected: str
) -> None:
    assert mistakes(large(cameras, stages)) == [expected]


@pytest.mark.parametrize(
    ("text", "more"),
    [
        ("".join(f"k{number}: 1\n" for number in range(30_000)), 29_950),
        (large(3000, 3).replace("frames:", "frmaes:"), 2_950),
        (large(3, 1000).replace("from: s", "from: t"), 948),
        (large(1, 3).replace("{frames", "{" + ", ".join(f"k{n}: 1" for n in range(9000)) + ", frames"), 8_950),
    ],
    ids=["keys", "cameras", "stages", "settings"],
)
@pytest.mark.slow
def test_mistakes_beyond_fifty_are_counted(parse: Callable[..., Any], text: str, more: int) -> None:
    with pytest.raises(GraphError) as caught:
        parse(text if "version" in text else RIGHT + text)
    lines = str(caught.value).splitlines()
    assert len(lines) == 51
    assert lines[-1] == f"and {more:,} more"
