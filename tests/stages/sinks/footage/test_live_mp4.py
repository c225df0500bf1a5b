"""An MP4 without an end: what follows a keyframe plays, with the times of the stream, and its name is the player's."""

from __future__ import annotations

import io
from collections.abc import Callable
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import av
import pytest
import structlog

from camgraph.pipeline.system.side_link import follow
from camgraph.stages.sinks.footage.live_mp4 import LiveMp4, can_play, codec_name
from camgraph.stages.video.packets import Packet, PacketReader
from camgraph.stages.video.tap import PacketTap


def packets_of(path: Path, folder: Path) -> list[Packet]:
    """All packets of a file, as they come over a tap."""
    place, reader, found = folder / "cam.packets", PacketReader(), []
    tap = PacketTap(place, structlog.get_logger(), patient=False)
    with av.open(str(path)) as container:
        packets = [packet for packet in container.demux(video=0) if packet.size]
        tap.offer(packets[0], 3)
        with closing(follow(place)) as link:
            for packet in packets:
                tap.offer(packet, 3)
                found += reader.packets(link.receive())
    tap.close()
    return found


@pytest.mark.parametrize("b_frames", ["0", "2"])
def test_a_clip_from_a_keyframe_on_keeps_the_streams_times(
    make_clip: Callable[..., Path], tmp_path: Path, b_frames: str
) -> None:
    packets = packets_of(
        make_clip("a.mp4", frames=40, options={"g": "10", "bf": b_frames, "sc_threshold": "0"}), tmp_path
    )
    made = LiveMp4(packets[0])
    fragments = [made.add(packet) for packet in packets[1:]]
    assert [fragment.is_key for fragment in fragments] == [packet.is_key for packet in packets[:-1]]
    keys = [number for number, fragment in enumerate(fragments) if fragment.is_key]
    assert len(keys) == 4
    for first in keys:
        film = io.BytesIO(made.beginning + b"".join(fragment.data for fragment in fragments[first:]))
        with av.open(film) as container:
            base = container.streams.video[0].time_base
            assert base is not None
            shown = [frame.pts * base + made.start for frame in container.decode(video=0) if frame.pts is not None]
        kept = packets[first : len(fragments)]
        assert shown == sorted(packet.pts * packet.stream.time_base for packet in kept)
        assert isinstance(shown[0], Fraction)


def test_the_player_is_asked_about_the_codec_by_its_name(make_clip: Callable[..., Path], tmp_path: Path) -> None:
    packets = packets_of(make_clip("a.mp4", frames=3, options={"profile": "high", "level": "3.1"}), tmp_path)
    assert LiveMp4(packets[0]).content_type == 'video/mp4; codecs="avc1.64001f"'
    assert can_play(packets[0].stream)


@pytest.mark.parametrize(
    ("box", "name"),
    [
        (b"avcC" + bytes.fromhex("014d401fffe1"), "avc1.4d401f"),
        # Main profile, level 4.0; and high tier with constraints.
        (b"hvcC" + bytes.fromhex("01016000000090000000000078f000"), "hvc1.1.6.L120.90"),
        (b"hvcC" + bytes.fromhex("0122200000009000000000009300f0"), "hvc1.2.4.H147.90"),
        (b"av1C" + bytes.fromhex("81050c00"), "av01.0.05M.08"),
        (b"vpcC" + bytes.fromhex("010000000015820202020000"), "vp09.00.21.08"),
        (b"mp4v", "unknown"),
    ],
)
def test_names_of_codecs(box: bytes, name: str) -> None:
    assert codec_name(b"moov...." + box + bytes(40)) == name


def test_h265_is_named_as_well(make_clip: Callable[..., Path], tmp_path: Path) -> None:
    packets = packets_of(
        make_clip("a.mp4", frames=3, codec="libx265", options={"x265-params": "log-level=0"}), tmp_path
    )
    assert LiveMp4(packets[0]).content_type.startswith('video/mp4; codecs="hvc1.1.6.L')


def test_av1_plays_whichever_decoder_it_was_read_with(make_clip: Callable[..., Path], tmp_path: Path) -> None:
    options = {"g": "10", "preset": "12", "svtav1-params": "lookahead=0"}
    packets = packets_of(make_clip("a.mkv", frames=20, codec="libsvtav1", options=options), tmp_path)
    assert can_play(packets[0].stream)
    made = LiveMp4(packets[0])
    assert 'codecs="av01.0.' in made.content_type
    film = io.BytesIO(made.beginning + b"".join(made.add(packet).data for packet in packets[1:]))
    with av.open(film) as container:
        assert len(list(container.decode(video=0))) == 19
