"""Pictures of others, asked through the service about the people in them, by the model that watches the cameras."""

from __future__ import annotations

import io
import struct
import time
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import numpy as np
import pytest
from camgraph_test_stages.described import assert_as_described
from camgraph_test_stages.services import Served, serving_run, with_tokens, write_light
from camgraph_test_stages.waiting import until
from PIL import Image

from camgraph.pipeline.errors import UserError
from camgraph.pipeline.testing import feed, opened
from camgraph.stages.messages import Tensor
from camgraph.stages.people.decode_yolo_pose import DecodeYoloPose
from camgraph.stages.people.infer import Infer
from camgraph.stages.people.preprocess import Preprocess
from camgraph.tools.lab.light_model import SIDE
from camgraph.tools.service.model.infer_calls import SpareTime
from camgraph.tools.service.model.model_link import MOST_PIXELS, read_picture, ways_of

WITHIN_S = 120.0
GRAPH = """
version: 1
name: asked
camera_defaults: {{url: cam.mp4, loop: true, realtime: true}}
cameras: {{hall: {{}}}}
stages:
{people}
  actions: {{use: rules, from: tracks, with: {{rules: [{{id: seen, when: score > 0.3, hold: 0.2s}}]}}}}
  page: {{use: serve, from: events, with: {{address: "127.0.0.1:{port}"{more}}}}}
"""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("i")
    write_light(folder)
    with serving_run(folder, GRAPH, more=with_tokens()) as run:
        yield run


def picture(grey: int, size: tuple[int, int] = (320, 180), form: str = "PNG") -> bytes:
    file = io.BytesIO()
    Image.new("RGB", size, (grey, grey, grey)).save(file, form)
    return file.getvalue()


def infer(served: Served, content: bytes, role: str = "operator") -> httpx.Response:
    return served.call("POST", "/api/infer", role, content=content)


@pytest.mark.parametrize("form", ["PNG", "JPEG", "WEBP"])
def test_a_picture_has_the_people_that_the_same_stages_find(served: Served, form: str) -> None:
    sent = picture(200, form=form)
    answer = infer(served, sent)
    assert_as_described("POST", "/api/infer", answer)
    [seen] = answer.json()["pictures"]
    people = found_by_hand(served.folder, sent)
    assert (seen["width"], seen["height"], seen["skeleton"]) == (320, 180, "coco-17")
    assert len(seen["people"]) == len(people) == 1
    np.testing.assert_allclose(seen["people"][0]["bbox"], people.boxes[0], atol=0.01)
    np.testing.assert_allclose(seen["people"][0]["keypoints"], people.keypoints[0].ravel(), atol=0.01)
    assert answer.json()["facts"].items() >= {("model", "light.onnx"), ("provider", "CPUExecutionProvider")}


def found_by_hand(folder: Path, coded: bytes):  # type: ignore[no-untyped-def]
    """By the stages of the graph, one after the other."""
    with opened(Preprocess, {"size": (SIDE, SIDE)}, folder=folder) as prepare:
        [asked] = feed(prepare, [read_picture(coded)])
    with opened(Infer, {"model": "light.onnx"}, folder=folder) as model:
        [outputs] = feed(model, [asked])
    assert isinstance(outputs, Tensor)
    settings = {"keypoints": 17, "outputs": ["output0"]}
    with opened(DecodeYoloPose, settings, folder=folder) as decode:
        [people] = feed(decode, [outputs])
    return people


def test_several_pictures_come_in_a_form(served: Served) -> None:
    files = [("p", ("bright.png", picture(200))), ("p", ("dark.png", picture(10, (100, 300))))]
    answer = served.call("POST", "/api/infer", "operator", files=files)
    assert_as_described("POST", "/api/infer", answer)
    seen = [(one["name"], one["width"], one["height"], len(one["people"])) for one in answer.json()["pictures"]]
    assert seen == [("bright.png", 320, 180, 1), ("dark.png", 100, 300, 0)]


def test_a_viewer_may_not_ask(served: Served) -> None:
    assert infer(served, picture(200), "viewer").status_code == 403
    assert infer(served, picture(200), "").status_code == 401


@pytest.mark.parametrize(
    ("sent", "status", "why"),
    [
        (b"", 400, "expected a picture: JPEG, PNG, WEBP"),
        (b"no picture", 400, "expected a picture"),
        (b"GIF89a" + bytes(100), 400, "expected a picture"),
        (picture(200)[:200], 400, "damaged"),
        (bytes(40 << 20), 413, "at most"),
    ],
)
def test_what_is_no_picture_is_refused_in_words(served: Served, sent: bytes, status: int, why: str) -> None:
    answer = infer(served, sent)
    assert answer.status_code == status
    assert why in answer.json()["error"]


def test_forms_without_pictures_are_refused_in_words(served: Served) -> None:
    headers = {"Content-Type": "multipart/form-data; boundary=x"}
    part = b"--x\r\nContent-Disposition: form-data"
    for content in (b"", b"--x--\r\n", part, part + b'; name="a"\r\n\r\n1\r\n--x--\r\n'):
        answer = served.call("POST", "/api/infer", "operator", content=content, headers=headers)
        assert (answer.status_code, "expected a form with pictures" in answer.text) == (400, True), answer.text
    many = [("p", (f"{number}.png", picture(200))) for number in range(17)]
    assert "16" in served.call("POST", "/api/infer", "operator", files=many).json()["error"]
    assert "request_failed" not in served.log


def test_a_name_that_is_no_model_is_refused(served: Served) -> None:
    answer = served.call("POST", "/api/infer?model=capture", "operator", content=picture(200))
    assert (answer.status_code, "expected one of infer" in answer.json()["error"]) == (400, True)


def test_what_is_no_picture_need_not_wait(served: Served) -> None:
    """The pictures before it use the time up, which comes again 25 times as slowly."""
    large = picture(200, (640, 480), "JPEG")
    took_s: list[float] = []

    def they_wait() -> bool:
        took_s.append(answered_after_s(served, large, 200))
        return min(took_s[-2:]) > 5 * min(took_s)

    until(they_wait, WITHIN_S, every_s=0.0)
    assert answered_after_s(served, b"no picture", 400) < took_s[-1] / 2


def answered_after_s(served: Served, content: bytes, status: int) -> float:
    begun_s = time.monotonic()
    assert infer(served, content).status_code == status
    return time.monotonic() - begun_s


def test_cameras_go_on_and_those_who_ask_wait(served: Served) -> None:
    """More at once than may wait: the others are told when to come again."""

    def frames() -> int:
        return int(served.get("/api/status", "viewer").json()["cameras"]["hall"]["frames"])

    def ask(_: int) -> httpx.Response:
        return infer(served, picture(200, (320, 240), "JPEG"))

    before = frames()
    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(ask, range(12)))
    refused = [answer for answer in answers if answer.status_code == 503]
    assert len(refused) >= 1
    assert {answer.status_code for answer in answers} <= {200, 503}
    for answer in refused:
        assert int(answer.headers["retry-after"]) >= 1
        assert answer.json()["id"] == "model-busy"
    # All are refused if one picture took so long that its time is saved again after a minute alone.
    until(lambda: infer(served, picture(200)).status_code == 200, 5 * WITHIN_S, every_s=1.0)
    until(lambda: frames() > before, WITHIN_S, every_s=0.5)


@pytest.mark.parametrize("side", [60_000, 8_000])
def test_a_picture_of_too_many_pixels_is_not_decoded(side: int) -> None:
    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    chunks = [b"IHDR" + header, b"IDAT" + zlib.compress(bytes(100))]
    coded = [struct.pack(">I", len(one) - 4) + one + struct.pack(">I", zlib.crc32(one)) for one in chunks]
    with pytest.raises(UserError, match="at most 50 megapixels"):
        read_picture(b"\x89PNG\r\n\x1a\n" + b"".join(coded))
    assert side * side > MOST_PIXELS


def test_pictures_of_16_bits_are_as_bright_as_those_of_8() -> None:
    shades = np.arange(0, 256, dtype=np.uint8).reshape(16, 16)
    found = []
    for pixels in (shades, shades.astype(np.uint16) * 256):
        file = io.BytesIO()
        Image.fromarray(pixels).save(file, "PNG")
        found.append(read_picture(file.getvalue()).bgr())
    assert np.array_equal(found[0], found[1])


def test_a_picture_is_turned_upright() -> None:
    file = io.BytesIO()
    image = Image.new("RGB", (40, 20), "black")
    exif = image.getexif()
    exif[0x0112] = 6
    image.save(file, "JPEG", exif=exif)
    frame = read_picture(file.getvalue())
    assert (frame.width, frame.height) == (20, 40)


def test_damaged_exif_is_passed_over_without_a_word(capfd: pytest.CaptureFixture[str]) -> None:
    file = io.BytesIO()
    image = Image.new("RGB", (40, 20), "black")
    exif = image.getexif()
    exif[0x010E] = "about it" * 3
    image.save(file, "JPEG", exif=exif)
    coded = file.getvalue()
    with (
        pytest.warns(UserWarning, match="EXIF|Tag data"),
        Image.open(io.BytesIO(damaged := _without_end(coded))) as bad,
    ):
        bad.getexif()
    frame = read_picture(damaged)
    assert (frame.width, frame.height) == (40, 20)
    assert capfd.readouterr() == ("", "")


def _without_end(coded: bytes) -> bytes:
    """A JPEG whose EXIF says that its text is longer than there are bytes."""
    at = coded.index(b"\x01\x0e\x00\x02") if b"\x01\x0e\x00\x02" in coded else coded.index(b"\x0e\x01\x02\x00")
    return coded[: at + 4] + b"\x7f\xff\xff\xff" + coded[at + 8 :]


def test_spare_time_is_saved_again_as_it_passes() -> None:
    now = [100.0]
    spare = SpareTime(0.04, lambda: now[0])
    assert spare.wait_s() == 0
    spare.spend(0.7)
    assert spare.wait_s() == pytest.approx(5.0)
    now[0] += 5
    assert spare.wait_s() == pytest.approx(0)
    taken = 0.0
    for _ in range(100):
        now[0] += max(spare.wait_s(), 0.2)
        spare.spend(0.2)
        taken += 0.2
    assert taken / (now[0] - 105) <= 0.04 + 0.2 / (now[0] - 105)


def test_a_model_behind_crops_is_not_asked_about_frames() -> None:
    uses = {"cam": "capture", "prep": "preprocess", "first": "infer", "people": "decode", "crops": "crop",
            "second": "infer", "joints": "add_keypoints"}  # fmt: skip
    edges = [("cam", "prep"), ("prep", "first"), ("first", "people"), ("crops", "second"), ("second", "joints")]
    graph = {
        "stages": [{"name": name, "use": use} for name, use in uses.items()],
        "edges": [{"from": sender, "to": reader} for sender, reader in edges],
    }
    assert [way.model for way in ways_of(graph)] == ["first"]
