"""From frames to pictures for a model."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from pydantic import ValidationError

from camgraph.pipeline.messages import Array
from camgraph.pipeline.testing import HandContext, feed, opened, stamp
from camgraph.stages.messages import Frame, Tensor
from camgraph.stages.people.preprocess import Preprocess, PreprocessSettings
from camgraph.stages.vision.letterbox import boxes_to_frame


def bgr_frame(width: int, height: int, seq: int = 0) -> Frame:
    pixels = np.random.default_rng(seq).integers(0, 256, (height, width, 3), dtype=np.uint8)
    pixels.flags.writeable = False
    return Frame(stamp(seq), pixels, width, height)


def yuv_frame(width: int, height: int, seq: int = 0) -> Frame:
    picture = cv2.GaussianBlur(bgr_frame(width, height, seq).pixels, (0, 0), 4)
    pixels = cv2.cvtColor(picture, cv2.COLOR_BGR2YUV_I420)
    pixels.flags.writeable = False
    return Frame(stamp(seq), pixels, width, height, "yuv420p")


def prepared(frame: Frame, folder: Path, **settings: Any) -> Tensor:
    with opened(Preprocess, settings, folder=folder) as stage:
        [tensor] = feed(stage, [frame])
    assert isinstance(tensor, Tensor)
    assert tensor.stamp == frame.stamp
    assert tensor.frame_size == (frame.width, frame.height)
    return tensor


def image_of(tensor: Tensor) -> Array:
    return tensor.arrays_by_name["image"]


@pytest.mark.parametrize("make", [bgr_frame, yuv_frame])
def test_a_letterbox(make: Any, tmp_path: Path) -> None:
    tensor = prepared(make(128, 72), tmp_path, size=[64, 64])
    image = image_of(tensor)
    assert (image.shape, image.dtype) == ((1, 64, 64, 3), np.uint8)
    assert tensor.fit.tolist() == [[0.5, 0.5, 0.0, 14.0]]
    assert tensor.fit.dtype == np.float32
    assert (image[0, :14] == 114).all()
    assert (image[0, 50:] == 114).all()
    assert not (image[0, 14] == 114).all()
    assert not (image[0, 49] == 114).all()


def test_the_bgr_path_is_resize_and_turn(tmp_path: Path) -> None:
    frame = bgr_frame(90, 160)
    image = image_of(prepared(frame, tmp_path, size=[64, 64], pad=0))[0]
    assert np.array_equal(image[:, 14:50], cv2.resize(frame.pixels, (36, 64))[..., ::-1])
    assert image[:, :14].max() == image[:, 50:].max() == 0


@pytest.mark.parametrize("size", [(64, 64), (65, 33), (97, 97), (100, 101)])
@pytest.mark.parametrize("frame_size", [(160, 90), (90, 160), (62, 150), (100, 100)])
def test_both_forms_of_a_frame_give_nearly_the_same(
    size: tuple[int, int], frame_size: tuple[int, int], tmp_path: Path
) -> None:
    yuv = yuv_frame(*frame_size)
    bgr = Frame(yuv.stamp, cv2.cvtColor(yuv.pixels, cv2.COLOR_YUV2BGR_I420), *frame_size)
    for fit in ("letterbox", "stretch", "crop"):
        one, other = (prepared(frame, tmp_path, size=size, fit=fit) for frame in (yuv, bgr))
        assert np.array_equal(one.fit, other.fit)
        difference = np.abs(image_of(one).astype(int) - image_of(other))
        assert difference.mean() < 2


def test_stretching_covers_everything(tmp_path: Path) -> None:
    frame = bgr_frame(50, 100)
    tensor = prepared(frame, tmp_path, size=[100, 50], fit="stretch")
    assert tensor.fit.tolist() == [[2.0, 0.5, 0.0, 0.0]]
    assert np.array_equal(image_of(tensor)[0], cv2.resize(frame.pixels, (100, 50))[..., ::-1])


@pytest.mark.parametrize(
    ("frame_size", "shown"), [((160, 90), np.s_[:, 34:124]), ((90, 160), np.s_[34:124]), ((90, 90), np.s_[:])]
)
def test_a_crop_shows_the_middle(frame_size: tuple[int, int], shown: Any, tmp_path: Path) -> None:
    """From an even pixel on, where the planes of a frame have chroma."""
    frame = bgr_frame(*frame_size)
    tensor = prepared(frame, tmp_path, size=[90, 90], fit="crop")
    assert np.array_equal(image_of(tensor)[0], frame.pixels[shown][..., ::-1])
    there = boxes_to_frame(np.array([[0, 0, 90, 90]], np.float32), tensor.fit[0], frame_size)
    left, top = (34 if side > 90 else 0 for side in frame_size)
    assert there.tolist() == [[left, top, left + 90, top + 90]]


def test_a_crop_of_another_size_keeps_proportions(tmp_path: Path) -> None:
    frame = bgr_frame(200, 100)
    tensor = prepared(frame, tmp_path, size=[50, 50], fit="crop")
    assert tensor.fit.tolist() == [[0.5, 0.5, -25.0, 0.0]]
    assert np.array_equal(image_of(tensor)[0], cv2.resize(frame.pixels[:, 50:150], (50, 50))[..., ::-1])


def test_a_crop_of_a_very_long_frame_takes_little_memory(tmp_path: Path) -> None:
    frame = bgr_frame(16000, 2)
    tracemalloc.start()
    tensor = prepared(frame, tmp_path, size=[224, 224], fit="crop")
    assert tracemalloc.get_traced_memory()[1] < 10_000_000
    tracemalloc.stop()
    assert image_of(tensor).shape == (1, 224, 224, 3)


@pytest.mark.parametrize("make", [bgr_frame, yuv_frame])
def test_native_pads_to_the_right_and_below(make: Any, tmp_path: Path) -> None:
    tensor = prepared(make(70, 64), tmp_path, size="native")
    image = image_of(tensor)[0]
    assert image.shape == (64, 96, 3)
    assert tensor.fit.tolist() == [[1.0, 1.0, 0.0, 0.0]]
    assert (image[:, 70:] == 114).all()


def test_pictures_lie_where_the_next_stage_reads_them(tmp_path: Path) -> None:
    given: list[Array] = []

    class Slots(HandContext):
        def new_arrays(self, specs: Any) -> dict[str, Array]:
            made = super().new_arrays(specs)
            for array in made.values():
                array[...] = 9
            given.extend(made.values())
            return made

    stage = Preprocess(PreprocessSettings(size=(65, 64)), Slots(tmp_path, tmp_path))
    stage.open()
    for tensor in stage.process([bgr_frame(33, 20), yuv_frame(34, 20)]):
        assert image_of(tensor) is given[-1]
        assert not (image_of(tensor)[0] == 9).all(-1).any()


def test_the_same_bits_every_time(tmp_path: Path) -> None:
    frames = [yuv_frame(160, 90), bgr_frame(161, 91)]
    for frame in frames:
        images = [image_of(prepared(frame, tmp_path, size=[96, 96])) for _ in range(3)]
        assert all(np.array_equal(images[0], image) for image in images)


@pytest.mark.parametrize("make", [bgr_frame, yuv_frame])
def test_native_makes_a_large_frame_smaller_where_asked(make: Any, tmp_path: Path) -> None:
    frame = make(256, 144)
    tensor = prepared(frame, tmp_path, size="native", max_side=128)
    assert tensor.fit.tolist() == [[0.5, 0.5, 0.0, 0.0]]
    image = image_of(tensor)
    assert image.shape == (1, 96, 128, 3)
    assert (image[0, 72:] == 114).all()
    assert image[0, :72].tolist() == image_of(prepared(frame, tmp_path, size=[128, 72]))[0].tolist()
    small = make(70, 64)
    assert image_of(prepared(small, tmp_path, size="native", max_side=128)).shape == (1, 64, 96, 3)


def test_auto_is_the_frames_own_size_up_to_the_usual_one(tmp_path: Path) -> None:
    assert image_of(prepared(bgr_frame(1536, 64), tmp_path, size="auto")).shape == (1, 32, 384, 3)
    assert image_of(prepared(bgr_frame(70, 64), tmp_path, size="auto")).shape == (1, 64, 96, 3)
    assert image_of(prepared(bgr_frame(256, 64), tmp_path, size="auto", max_side=128)).shape == (1, 32, 128, 3)


def test_a_fixed_size_has_no_longest_side(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="remove one of them"):
        PreprocessSettings(size=(640, 640), max_side=512)


@pytest.mark.parametrize("size", ["huge", [640], [0, 640], [640, 100_000]])
def test_sizes_that_are_none(size: Any) -> None:
    with pytest.raises(ValidationError):
        PreprocessSettings.model_validate({"size": size})


def test_each_camera_may_have_its_own_longest_side(tmp_path: Path) -> None:
    frame = bgr_frame(256, 64)
    sides = {frame.stamp.camera: 128, "*": 64}
    assert image_of(prepared(frame, tmp_path, size="native", max_side=sides)).shape == (1, 32, 128, 3)
    assert image_of(prepared(frame, tmp_path, size="native", max_side={"other": 64, "*": 64})).shape == (1, 32, 64, 3)
    assert image_of(prepared(frame, tmp_path, size="native", max_side={"other": 64})).shape == (1, 64, 256, 3)


def test_a_side_for_a_camera_that_is_not_there_is_remarked_on(tmp_path: Path) -> None:
    settings = PreprocessSettings(size="native", max_side={"fornt": 384, "*": 512})
    [remark] = Preprocess.remarks(settings, tmp_path, {"front": (640, 480)})
    assert remark == "max_side: no camera of the graph is called `fornt`; did you mean `front`?"
