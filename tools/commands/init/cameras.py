"""Asks for one camera after the other, and tries each at once."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import cv2
from rich.console import Console
from rich.text import Text

from camgraph.pipeline.errors import UserError
from camgraph.pipeline.foreign_text import shown
from camgraph.pipeline.system.names import A_CAMERA_NAME, is_camera_name, nearest_camera_name
from camgraph.stages.video.addresses import is_device, is_rtsp
from camgraph.stages.vision.planes import U8
from camgraph.tools.commands.init import discovery, onvif
from camgraph.tools.commands.init.address import Address, address_of
from camgraph.tools.commands.init.dialog import Dialog
from camgraph.tools.commands.init.discovery import GROUP, Device, discover
from camgraph.tools.commands.init.placing import Folder
from camgraph.tools.commands.init.soap import SoapProblem
from camgraph.tools.commands.init.texts import NewCamera
from camgraph.tools.commands.init.trial import WITHIN_S, Seen, try_camera
from camgraph.tools.commands.watching.sources import camera_name, unique_names
from camgraph.tools.display.console import console_of_output

USUAL_PATHS = (
    "/Streaming/Channels/101",  # Hikvision, and who builds with its parts
    "/cam/realmonitor?channel=1&subtype=0",  # Dahua, Amcrest
    "/axis-media/media.amp",  # Axis
    "/h264Preview_01_main",  # Reolink
    "/stream1",  # TP-Link
)
"""Where cameras of common makers have their stream. Only tried after a camera has said that it has none at its root."""
MOST_WRONG = 2
"""Passwords that a camera refuses: after some more, many lock the account."""
_PATIENCE_S = 2.0
"""For letting go of the camera."""
_LOOK_S = 0.1
_SEARCH = "?"
_PICTURE_WIDTH = 64
_MOST_PICTURE_ROWS = 24
_HALF = "\N{UPPER HALF BLOCK}"


def require_cameras(tell_in: Sequence[str], cameras: Sequence[str]) -> None:
    """Raises UserError if `--in` names a camera that there is not."""
    unknown = [name for name in tell_in if name not in cameras]
    if unknown:
        raise UserError(
            f"--in {unknown[0]}: no camera has this name; there are {', '.join(cameras)}", error_id="name-unknown"
        )


class CameraQuestions:
    """`tries`: whether cameras are connected to at all. `wrong`: how many passwords each host has refused in a row."""

    def __init__(
        self,
        dialog: Dialog,
        folder: Folder,
        environ: Mapping[str, str],
        *,
        tries: bool,
        group: tuple[str, int] = GROUP,
    ) -> None:
        self._dialog = dialog
        self._folder = folder
        self._environ = environ
        self._tries = tries
        self._group = group
        self._login = ("", "")
        self._refused: set[tuple[str, str, str]] = set()
        self.cameras: list[NewCamera] = []
        self.silent: list[str] = []
        """The cameras that were tried and brought no picture."""
        self.pictures: dict[str, Sequence[U8]] = {}
        """Of the live ones that did: some pictures of each."""
        self.wrong: Counter[str] = Counter()

    # ---- by options

    def take(self, given: Sequence[str], *, tell_in: Sequence[str] = ()) -> None:
        """Cameras of the command line, NAME=ADDRESS or ADDRESS. Raises UserError before the first is tried.

        ``tell_in``: the names that must be among them.
        """
        pairs = [self._pair(text) for text in given]
        names = Counter(name for name, _ in pairs if name)
        for name in [name for name, times in names.items() if times > 1]:
            raise UserError(f"two cameras are called {name}: each needs a name of its own", error_id="name-taken")
        taken = unique_names([name or _name_of(address) for name, address in pairs])
        require_cameras(tell_in, taken)
        for name, (_, address) in zip(taken, pairs, strict=True):
            self._add(name, address)

    def _pair(self, text: str) -> tuple[str, Address]:
        name, equals, rest = text.partition("=")
        if not equals or any(sign in name for sign in "/:@?$"):
            return "", address_of(text, Path.cwd(), self._environ)
        return _checked_name(name), address_of(rest, Path.cwd(), self._environ)

    # ---- by questions

    def ask(self, *, search: bool) -> None:
        """Cameras, until that was all; `search`: look for some in the network first."""
        if search:
            self._search()
        while True:
            if not self.cameras:
                self._dialog.show(
                    "Where is your camera? Type its address, such as rtsp://10.0.0.11/main, or only 10.0.0.11, "
                    "or 0 for one that is plugged into this machine."
                )
                typed = self._dialog.ask("Address (Enter looks for cameras in this network)") or _SEARCH
            else:
                typed = self._dialog.ask("\nThe next camera (Enter if that was all, ? looks in this network)")
            if not typed:
                return
            if typed == _SEARCH:
                self._search()
                continue
            try:
                address = address_of(typed, Path.cwd(), self._environ)
            except UserError as error:
                self._dialog.show(str(error), "  ")
                continue
            if self.cameras and self.cameras[0].address.live != address.live:
                self._dialog.show("Live cameras and files do not go into one graph: make two.", "  ")
                continue
            self._ask_name(address)

    def _ask_name(self, address: Address, default: str = "") -> None:
        taken = [camera.name for camera in self.cameras]
        *_, free = unique_names([*taken, default or _name_of(address)])

        def read(text: str) -> str:
            name = _checked_name(text)
            if name in taken:
                raise UserError(f"another camera is called {shown(name)} already", error_id="name-taken")
            return name

        self._add(self._dialog.ask_for("What do you call it, such as room-3", read, free), address)

    def _add(self, name: str, address: Address) -> None:
        kept = self._tried(name, address) if self._tries else address
        if kept is not None:
            self.cameras.append(NewCamera(name, kept))

    # ---- trying

    def _tried(self, name: str, address: Address) -> Address | None:
        """The address that works, or that is to be kept as it is; None to leave the camera out."""
        while True:
            self._dialog.show(f"Trying {shown(name)} ({address.shown}) ...")
            address, seen = self._looked(address)
            if seen.is_live:
                if self._is_right(name, seen):
                    if address.live:
                        self.pictures[name] = seen.pictures
                    return address
                return self._another(name, address)
            self._dialog.show(self._why_not(address, seen), "  ")
            if not self._dialog.asks:
                self.silent.append(name)
                return address
            if seen.state == "unauthorised" and self.wrong[address.hostname] < MOST_WRONG:
                address = self._ask_login(address)
                continue
            next_one = self._what_now(name, address)
            if next_one is not address:
                if next_one is None:
                    return None
                address = next_one
                continue
            self.silent.append(name)
            return address

    def _looked(self, address: Address) -> tuple[Address, Seen]:
        """Look there; at the usual paths, if the camera says that it has nothing at its root."""
        seen = self._try_address(address)
        guessed = address.path in USUAL_PATHS
        if seen.state != "gone" or (address.has_path and not guessed):
            return address, seen
        if not guessed:
            self._dialog.show("It answers, and has no stream at this address itself. Trying the usual ones ...", "  ")
        # The camera may have asked for a password first, at a path that it does not have either.
        for path in USUAL_PATHS[USUAL_PATHS.index(address.path) + 1 if guessed else 0 :]:
            there = address.with_path(path)
            found = self._try_address(there)
            if found.state != "gone":
                return there, found
        return address, seen

    def _try_address(self, address: Address) -> Seen:
        """Connect; but with no password that was refused before, and with none after the last that may be wrong."""
        login = (address.hostname, address.user, address.password)
        if address.password and (login in self._refused or self.wrong[address.hostname] >= MOST_WRONG):
            return Seen("unauthorised")
        seen = patiently_tried(address.url)
        if seen.state == "unauthorised" and address.password:
            self.wrong[address.hostname] += 1
            self._refused.add(login)
        elif seen.is_live and address.user:
            self.wrong[address.hostname] = 0
            self._login = (address.user, address.password)
        return seen

    def _why_not(self, address: Address, seen: Seen) -> str:
        """What is wrong, and what to do, for somebody who is no engineer."""
        if seen.state == "unauthorised" and not address.password:
            return "It wants a user and a password: those that you set in the camera."
        if seen.state == "unauthorised" and self.wrong[address.hostname] < MOST_WRONG:
            return "It refuses this user or this password."
        if seen.state == "unauthorised":
            return (
                "It has refused two passwords. camgraph tries no more: many cameras lock the account after a few. "
                "Look the password up, wait some minutes, and begin anew; or write it into secrets.env later."
            )
        if seen.state == "gone":
            where = ", often like /stream1 or /Streaming/Channels/101" if is_rtsp(address.place) else ""
            return f"It answers, and has no stream at this path. Its manual or its web page has the right one{where}."
        why = shown(seen.why.removeprefix(f"{address.shown}: ").replace(" (connect_s)", ""))
        return f"No picture: {why}. {_advice(address, why)}"

    def _is_right(self, name: str, seen: Seen) -> bool:
        """Show what was seen, and ask whether it is the right camera."""
        assert seen.picture is not None
        self._dialog.show(f"It works: {seen.words()}.", "  ")
        if seen.clock_words():
            self._dialog.show(f"But {seen.clock_words()}.", "  ")
        path = self._folder.write_picture(name, seen.picture)
        if self._dialog.asks and not show_picture(console_of_output(), seen.picture):
            self._dialog.show(f"Its picture, to look at: {path}", "  ")
        else:
            self._dialog.show(f"Its picture: {path}", "  ")
        if seen.is_dark:
            self._dialog.show("It is nearly black: is the lens covered, or is it dark there?", "  ")
        if self._dialog.confirm("Is this the right camera?", default=True):
            return True
        self._folder.drop_picture(path)
        return False

    def _ask_login(self, address: Address) -> Address:
        user, password = self._login
        same = " (Enter: the same as before)" if password else ""
        user = self._dialog.ask("User", address.user or user or "admin")
        typed = self._dialog.ask(f"Password, which does not show{same}", password, hidden=True)
        if not typed.isprintable():
            self._dialog.show("A password cannot hold control characters.", "  ")
        return address.with_login(user, typed)

    def _what_now(self, name: str, address: Address) -> Address | None:
        """Another address or an equal one, to be tried; this very one to keep it as it is, None to leave it out."""
        self._dialog.show(
            "Type another address, or its path; + tries again; - leaves this camera out; Enter keeps it, for later."
        )
        return self._address_or(f"{shown(name)}: what now", address, empty=address)

    def _another(self, name: str, address: Address) -> Address | None:
        question = f"The right address of {shown(name)} (Enter leaves it out)"
        other = self._address_or(question, address, empty=None)
        return None if other is None else self._tried(name, other)

    def _address_or(self, question: str, address: Address, *, empty: Address | None) -> Address | None:
        """The address that is typed; `empty` for none, and None for `-`."""

        def read(text: str) -> Address | None:
            if not text or text == "-":
                return None if text else empty
            if text == "+":
                return replace(address)
            typed = address.with_path(text) if text.startswith("/") and address.host else None
            other = typed or address_of(text, Path.cwd(), self._environ)
            same_place = other.host == address.host and not other.user
            return other.with_login(address.user, address.password) if same_place else other

        return self._dialog.ask_for(question, read)

    # ---- searching

    def _search(self) -> None:
        """Look for cameras in the network, and take those that are chosen."""
        self._dialog.show("Looking for cameras in this network, for 3 s ...")
        try:
            devices = discover(self._group, discovery.LISTEN_S)
        except OSError as error:
            devices = []
            self._dialog.show(f"This machine cannot ask its network: {error.strerror or error}.", "  ")
        if not devices:
            self._dialog.show(
                "None has answered. Many cameras do so only if ONVIF is turned on in their settings; the page of "
                "your router lists their addresses too.",
                "  ",
            )
            return
        for number, device in enumerate(devices, 1):
            self._dialog.show(f" {number:2}  {device.host}  {device.name}")
        known = {str(number): device for number, device in enumerate(devices, 1)}
        for chosen in self._dialog.choose("Which of them? Numbers, with commas between (Enter: none)", list(known)):
            self._take_device(known[chosen])

    def _take_device(self, device: Device) -> None:
        self._dialog.show(f"\n{device.host}  {device.name}")
        address = self._stream_of(device)
        self._ask_name(address, nearest_camera_name(device.name) if device.name != "a camera" else "")

    def _stream_of(self, device: Device) -> Address:
        """By what the camera says of itself; if it says nothing, its root, from where the usual paths are tried."""
        address = Address(f"rtsp://{device.host}")
        while self.wrong[address.hostname] < MOST_WRONG:
            address = self._ask_login(address)
            try:
                found = Address(onvif.stream_address(device.service, address.user, address.password))
                return found.with_login(address.user, address.password)
            except onvif.WrongPassword:
                self.wrong[address.hostname] += 1
                self._dialog.show("It refuses this user or this password.", "  ")
            except SoapProblem as problem:
                self._dialog.show(f"It does not say where its stream is: {problem}.", "  ")
                break
        return address


def _advice(address: Address, why: str) -> str:
    """What to look at first."""
    if is_device(address.place):
        return "Is the camera plugged in? 0 is the first one of this machine, 1 the next."
    if not address.live:
        return "Does a player show this file?"
    if "refused" in why:
        return "There is a machine, and it takes no call: is RTSP turned on in the camera, and is the port right?"
    if "name" in why:
        return "Is the name right? The number, such as 10.0.0.11, does as well."
    return "Is it switched on, is its network cable in, and is the address right?"


def patiently_tried(url: str) -> Seen:
    """`try_camera` in a thread of its own: Ctrl-C is heeded at once, and a device that hangs in the kernel is left."""
    found: list[Seen] = []
    stop = threading.Event()
    thread = threading.Thread(target=lambda: found.append(try_camera(url, stop)), daemon=True)
    thread.start()
    try:
        until_s = time.monotonic() + WITHIN_S + _PATIENCE_S
        while thread.is_alive() and time.monotonic() < until_s:
            thread.join(_LOOK_S)
    finally:
        stop.set()
        thread.join(_PATIENCE_S)
    return found[0] if found else Seen("lost", "it does not answer")


def _checked_name(text: str) -> str:
    """A name as a graph has it: blanks become `-`. Raises UserError."""
    name = nearest_camera_name(text)
    if not name or not is_camera_name(name):
        raise UserError(
            f"{shown(text, 40) or 'nothing'} is no name for a camera: expected {A_CAMERA_NAME}",
            error_id="name-not-allowed",
        )
    return name


def _name_of(address: Address) -> str:
    return camera_name(address.place, Path.cwd())


def show_picture(console: Console, picture: U8) -> bool:
    """Print it, coarsely: two points in each letter.

    False if this terminal has too few colours or letters, and nothing was printed.
    """
    if not console.is_terminal or console.color_system not in ("256", "truecolor"):
        return False
    try:
        _HALF.encode(console.encoding)
    except UnicodeEncodeError:
        return False
    console.print(drawn(picture, min(_PICTURE_WIDTH, console.width - 4)))
    return True


def drawn(picture: U8, width: int) -> Text:
    """The (H, W, 3) BGR picture, at most `width` letters wide and `_MOST_PICTURE_ROWS` high."""
    height_of_one = picture.shape[0] / picture.shape[1]
    width = max(1, min(width, round(2 * _MOST_PICTURE_ROWS / height_of_one)))
    rows = min(_MOST_PICTURE_ROWS, max(1, round(width * height_of_one / 2)))
    small = cv2.resize(picture, (width, 2 * rows), interpolation=cv2.INTER_AREA)
    text = Text()
    for row in range(rows):
        text.append("  ")
        for upper, lower in zip(small[2 * row], small[2 * row + 1], strict=True):
            text.append(_HALF, f"{_colour(upper)} on {_colour(lower)}")
        text.append("\n")
    return text


def _colour(point: U8) -> str:
    blue, green, red = (int(value) for value in point)
    return f"#{red:02x}{green:02x}{blue:02x}"
