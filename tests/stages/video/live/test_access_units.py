"""What packets say of themselves, held against what FFmpeg makes of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import av
import pytest
from hypothesis import given
from hypothesis import strategies as st

from camgraph.stages.video.live.access_units import H264, H265, ORDINARY, AccessUnit, Opaque, reader_for

MakeClip = Callable[..., Path]
CODECS = {
    "h264": ("libx264", {"x264-params": "bframes=2:b-adapt=0:b-pyramid=none:keyint=12:scenecut=0"}),
    "hevc": ("libx265", {"x265-params": "bframes=2:b-adapt=0:b-pyramid=0:keyint=12:scenecut=0:log-level=none"}),
}


def packets_of(path: Path) -> list[tuple[bytes, bool]]:
    """Each packet in Annex B, and whether it is a keyframe."""
    with av.open(str(path)) as container:
        return [(bytes(packet), packet.is_keyframe) for packet in container.demux(video=0) if packet.size]


def clip_of(make_clip: MakeClip, codec: str) -> list[tuple[bytes, bool]]:
    encoder, options = CODECS[codec]
    return packets_of(make_clip("a.ts", frames=36, codec=encoder, options=options))


def looked(codec: str, packets: list[tuple[bytes, bool]]) -> list[AccessUnit]:
    reader = reader_for(codec, None)
    return [reader.observe(data) for data, _ in packets]


def luma_of(codec: str, packets: list[tuple[bytes, bool]]) -> list[bytes]:
    context = av.CodecContext.create(codec, "r")
    assert isinstance(context, av.VideoCodecContext)
    frames = [frame for data, _ in packets for frame in context.decode(av.Packet(data))]
    return [frame.to_ndarray()[: frame.height].tobytes() for frame in [*frames, *context.decode(None)]]


@pytest.mark.parametrize("codec", CODECS)
def test_without_the_disposable_ones_the_others_are_the_same(make_clip: MakeClip, codec: str) -> None:
    packets = clip_of(make_clip, codec)
    units = looked(codec, packets)
    kept = [packet for packet, unit in zip(packets, units, strict=True) if not unit.disposable]
    assert len(packets) // 3 < len(kept) < len(packets) * 2 // 3
    assert all(not unit.disposable for unit, (_, key) in zip(units, packets, strict=True) if key)
    base, whole = luma_of(codec, kept), luma_of(codec, packets)
    assert len(base) == len(kept)
    assert set(base) <= set(whole)


@pytest.mark.parametrize("codec", CODECS)
def test_a_whole_stream_has_no_gap(make_clip: MakeClip, codec: str) -> None:
    assert not any(unit.gap for unit in looked(codec, clip_of(make_clip, codec)))


def test_a_picture_that_is_missing_and_referred_to_is_a_gap(make_clip: MakeClip) -> None:
    packets = clip_of(make_clip, "h264")
    units = looked("h264", packets)
    referred = [n for n, (_, key) in enumerate(packets) if not key and not units[n].disposable]
    assert len(referred) > 5
    for n in referred:
        rest = [*packets[:n], *packets[n + 1 :]]
        gaps = [m for m, unit in enumerate(looked("h264", rest)) if unit.gap]
        next_is_key = rest[n][1] if n < len(rest) else True
        assert next_is_key or gaps[0] == n


def nal_kinds(data: bytes) -> list[tuple[int, bytes]]:
    """(type, with its start code) of each NAL unit of H.264."""
    return [(part[0] & 31, b"\0\0\1" + part) for part in data.replace(b"\0\0\0\1", b"\0\0\1").split(b"\0\0\1")[1:]]


def test_gap_is_seen_with_parameters_in_extradata_only(make_clip: MakeClip) -> None:
    packets = [nal_kinds(data) for data, _ in clip_of(make_clip, "h264")]
    described = b"".join(nal for kind, nal in packets[0] if kind in (7, 8))
    bare = [b"".join(nal for kind, nal in nals if kind not in (7, 8)) for nals in packets]
    assert described
    for extradata, gaps in ((described, [False, False, True]), (None, [False, False, False])):
        reader = reader_for("h264", extradata)
        # A keyframe, and of the three pictures behind it that others refer to all but the second.
        assert [reader.observe(bare[n]).gap for n in (0, 1, 7)] == gaps


def test_one_that_nobody_refers_to_leaves_no_gap(make_clip: MakeClip) -> None:
    packets = clip_of(make_clip, "h264")
    units = looked("h264", packets)
    rest = [packet for packet, unit in zip(packets, units, strict=True) if not unit.disposable]
    assert not any(unit.gap for unit in looked("h264", rest))


def test_nothing_is_known_of_other_streams() -> None:
    assert isinstance(reader_for("mjpeg", None), Opaque)
    assert isinstance(reader_for("h264", b"\x01\x64\x00"), Opaque)
    assert reader_for("mjpeg", None).observe(b"\xff\xd8") == ORDINARY


@given(st.lists(st.binary(max_size=80) | st.sampled_from([b"\0\0\1g", b"\0\0\1\x41", b"\0\0\1\x02\x01"])))
def test_nonsense_is_survived(parts: list[bytes]) -> None:
    for reader in (H264(), H265()):
        for part in (b"\0\0\1g\x64\0\x1f" + b"\0\0\1".join(parts), *parts):
            assert isinstance(reader.observe(part), AccessUnit)
