"""Starts camgraph's own programs as copies of a process that has imported them: a `fork` instead of an `exec`.

    the tests --Popen: words, descriptors--> the template --fork--> python -m camgraph.tools.cli run g.yaml

A command or a run that a test starts spends most of its processor time on imports: twice, since the fork server of the
run imports as well. After `install`, `subprocess.Popen` hands such a command to a template, a process that has imported
what all of them need. Each process that tests has one template. A copy is a real process: a child of its caller, with
its own standard streams, environment, folder, limits and process group, and with the command line that an `exec` would
have. The copy runs the module as `python -m` does, from the first line to the exit status.

What a copy could not reproduce is executed as ever: other options of Python, an environment that changes how Python
starts, `preexec_fn`. With `CAMGRAPH_TEST_COLD=1` all is executed, and so is what tests with the marker `cold` start:
their subject is the start itself, or what only an `exec` leaves, such as /proc/PID/environ.

The template has one thread, and what it imports must start none. ONNX Runtime does; copies import it themselves.
"""

from __future__ import annotations

import atexit
import ctypes
import fcntl
import functools
import gc
import importlib
import importlib.util
import inspect
import io
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from camgraph.pipeline.supervision.child_start import _reaper_of_orphans

MARKER = "cold"
COLD = "CAMGRAPH_TEST_COLD"
_MODULE = "camgraph_test_stages.warm_starts"
_ROOM = 4000
"""Characters of the template's command line: a copy writes its own over them."""
_READY_S, _FORKS_S = 200.0, 100.0
_MOST_BYTES, _MOST_DESCRIPTORS = 1 << 20, 64
_ARGUMENTS = 45
"""In /proc/PID/stat, behind the name: the place of `arg_start`, which `arg_end` follows."""
_STARTS_RUNS = frozenset({"run", "watch", "serve", "demo", "plan"})
"""Commands whose copy gets a template of its own, for the processes of its run; scripts get one as well."""
_COMMAND_LINES = frozenset({"camgraph", "camgraph.tools.cli"})
_AT_START = ("PYTHON", "LD_", "LC_", "LANG", "MALLOC_", "GLIBC_", "OPENBLAS_", "OMP_")
"""Variables that Python and its libraries read as they start, by their beginnings; the next are reproduced."""
_REPRODUCED = {"PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE", "PYTHONPATH", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"}
_COERCED = ("LC_CTYPE", "C.UTF-8")
"""What Python itself puts into its environment where nothing names a locale."""
_OPENCV = "/site-packages/cv2/"
"""OpenCV puts a folder of its own into LD_LIBRARY_PATH when it is imported; that changes nothing for anybody."""
_LIMITS = sorted(getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_"))
_UNFLUSHED = 120
_SET_DUMPABLE = 4
_STREAMS = ("p2cread", "c2pwrite", "errwrite")
_PIPES = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")


@dataclass(frozen=True)
class Command:
    """A process to be.

    `words`: Python, perhaps `-P`, then `-m` and a module, or a script, then arguments. `targets`: the numbers of the
    descriptors, in the order in which they are sent.
    """

    words: list[str]
    folder: str
    environ: dict[str, str]
    targets: list[int]
    limits: list[list[int]]
    cores: list[int]
    mask: int
    group: int
    session: bool
    user: int | None
    groups: list[int]

    @property
    def is_safe(self) -> bool:
        """Whether Python looks for modules in no folder of the caller's."""
        return self.words[1] == "-P"

    @property
    def module(self) -> str:
        """The module that runs; "" for a script."""
        return self.words[2 + self.is_safe] if self.words[1 + self.is_safe] == "-m" else ""

    @property
    def arguments(self) -> list[str]:
        """What comes behind the module or the script."""
        return self.words[(3 if self.module else 2) + self.is_safe :]

    @property
    def starts_runs(self) -> bool:
        return not self.module or (
            self.module in _COMMAND_LINES and bool(_STARTS_RUNS.intersection(self.arguments[:1]))
        )


@dataclass
class Template:
    """A template of this process for one interpreter, from its caller's side; started with the first command."""

    python: str = sys.executable
    process: subprocess.Popen[bytes] | None = None
    environ: Mapping[str, str] = field(default_factory=dict)
    set_by_us: dict[str, str] = field(default_factory=dict)
    """In a copy: variables that camgraph sets as soon as it is imported."""
    caller: int = 0
    _requests: socket.socket | None = None
    _is_ready: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def begin(self, environ: Mapping[str, str]) -> None:
        """Start the template in this environment, without waiting for it."""
        if self._requests is not None:
            return
        self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.environ, self.caller = dict(environ), os.getpid()
        with theirs, cold():
            self.process = subprocess.Popen(
                [self.python, "-P", "-m", _MODULE, str(theirs.fileno()), " " * _ROOM],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={**environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
                process_group=0,
            )

    def connected(self, environ: Mapping[str, str]) -> socket.socket:
        """Where requests go, once the template is ready."""
        with self._lock:
            self.begin(environ)
            assert self._requests is not None
            if not self._is_ready:
                self._requests.settimeout(_READY_S)
                self._requests.recv(32)  # nothing if it is dead, and then the next request tells
                self._requests.settimeout(_FORKS_S)
                self._is_ready = True
            return self._requests

    def inherit(self, requests: socket.socket) -> None:
        """Use a template that is ready: this process has just forked it."""
        requests.settimeout(_FORKS_S)
        self._requests, self._is_ready, self.caller = requests, True, os.getpid()

    def close(self) -> None:
        """End the template. Its copies go on."""
        if self._requests is not None and self.process is not None:
            self._requests.close()
            self.process.wait()
        self._requests, self.process, self._is_ready = None, None, False


TEMPLATE = Template()
OTHERS: dict[str, Template] = {}
"""Those of further interpreters: `strangers` has one that other users can start."""
_wanted = [True]


# ---- the side of the caller


def install() -> None:
    """From now on, this process starts camgraph's programs as copies where that gives the same."""
    executed = subprocess.Popen._execute_child  # type: ignore[attr-defined]
    names = list(inspect.signature(executed).parameters)[1:]

    @functools.wraps(executed)
    def execute(popen: Any, *values: Any, **named: Any) -> None:
        given = dict(zip(names, values, strict=False)) | named
        pid = _copied(given) if _wanted[-1] and COLD not in os.environ else 0
        if not pid:
            executed(popen, *values, **named)
            return
        popen.pid, popen._child_created = pid, True
        popen._close_pipe_fds(*(given[name] for name in _PIPES))

    subprocess.Popen._execute_child = execute  # type: ignore[attr-defined]


@contextmanager
def cold() -> Iterator[None]:
    """Meanwhile, everything is executed."""
    _wanted.append(False)
    try:
        yield
    finally:
        _wanted.pop()


def _copied(given: Mapping[str, Any]) -> int:
    """The id of a copy that does what these arguments of `Popen._execute_child` say; 0 where none can."""
    try:
        words = [os.fsdecode(word) for word in given["args"]]
        template = OTHERS.get(words[0], TEMPLATE)
        if not (words[0] == template.python and _is_ours(words) and _is_plain(given) and _is_usual_process(template)):
            return 0
        command = _command(words, given)
        if not os.access(command.folder, os.X_OK):
            return 0
        requests = template.connected(command.environ if words[0] in OTHERS else os.environ)
        if not _starts_alike(command.environ, template.environ):
            return 0
        sys.audit("subprocess.Popen", given["executable"], given["args"], given["cwd"], given["env"])
        streams = [number if given[name] == -1 else given[name] for number, name in enumerate(_STREAMS)]
        return _ask(requests, command, [*streams, *command.targets[3:]])
    except (AttributeError, IndexError, KeyError, OSError, TypeError, ValueError):  # another Python or system; ...
        return 0


def _is_ours(words: list[str]) -> bool:
    """`python [-P] -m camgraph...` or `python script.py`."""
    if words[1] == "-P":
        words = words[1:]
    return words[1].endswith(".py") or (words[1] == "-m" and words[2].startswith("camgraph"))


def _is_plain(given: Mapping[str, Any]) -> bool:
    usual = given["preexec_fn"] is None and given["umask"] == -1 and not given["shell"] and bool(given["close_fds"])
    return usual and given["executable"] in (None, given["args"][0]) and given["uid"] == given["gid"]


def _is_usual_process(template: Template) -> bool:
    """Whether this process can be the parent of copies, and would hand on nothing unusual to them."""
    ignored = any(signal.getsignal(one) == signal.SIG_IGN for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP))
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    return template.caller in (0, os.getpid()) and not ignored and not blocked and os.geteuid() == os.getuid()


def _command(words: list[str], given: Mapping[str, Any]) -> Command:
    environ = os.environ if given["env"] is None else given["env"]
    return Command(
        words=words,
        folder=str(Path.cwd() / os.fsdecode(given["cwd"] or "")),
        environ={os.fsdecode(name): os.fsdecode(value) for name, value in environ.items()},
        targets=[0, 1, 2, *sorted(set(given["pass_fds"]))],
        limits=[list(resource.getrlimit(limit)) for limit in _LIMITS],
        cores=sorted(os.sched_getaffinity(0)),
        mask=_umask(),
        group=given["process_group"],
        session=given["start_new_session"],
        user=given["uid"],
        groups=given["gids"] or [],
    )


def _umask() -> int:
    [line] = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("Umask:")]
    return int(line.split()[1], 8)


def _starts_alike(environ: Mapping[str, str], of_template: Mapping[str, str]) -> bool:
    """Whether Python and its libraries start in this environment as in that of the template."""
    paths = {path for path in environ.get("PYTHONPATH", "").split(os.pathsep) if path}
    known = {*sys.path, *map(os.path.realpath, sys.path), *of_template.get("PYTHONPATH", "").split(os.pathsep)}
    return read_at_start(environ) == read_at_start(of_template) and paths <= known


def read_at_start(environ: Mapping[str, str]) -> dict[str, str]:
    """The part of this environment that a template must have as well."""
    read = {name: environ[name] for name in environ if name.startswith(_AT_START) and name not in _REPRODUCED}
    return {name: value for name, value in read.items() if (name, value) != _COERCED and _OPENCV not in value}


def _ask(requests: socket.socket, command: Command, descriptors: Sequence[int]) -> int:
    """Have the template make the process; the id of this new child."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.settimeout(_FORKS_S)
    with ours, _reaper_of_orphans():
        with theirs:
            socket.send_fds(requests, [json.dumps(asdict(command)).encode()], [theirs.fileno(), *descriptors])
        try:
            return int(ours.recv(32))
        except TimeoutError:  # to execute the command as well would start it twice
            raise RuntimeError(f"the template does not answer: {command.words}") from None


# ---- the template


def _serve(requests: socket.socket) -> Command | None:
    """Make copies until nobody can ask any more: None. In a copy, returns what it is to do."""
    while True:
        data, descriptors, _, _ = socket.recv_fds(requests, _MOST_BYTES, _MOST_DESCRIPTORS)
        if not data:
            return None
        command = Command(**json.loads(data))
        if _is_copy(command, requests, descriptors):
            return command
        for descriptor in descriptors:
            os.close(descriptor)


def _is_copy(command: Command, requests: socket.socket, descriptors: Sequence[int]) -> bool:
    """True in the copy, once it is a child of its caller and has said so.

    As in `pipeline.worker.fork_server`, a process between the two ends at once, and the caller gets the orphan.
    """
    template, between = os.getpid(), os.fork()
    if between:
        os.waitpid(between, 0)
        return False
    between = os.getpid()
    if os.fork():
        os._exit(0)
    until_s = time.monotonic() + _FORKS_S
    while os.getppid() in (between, template) and time.monotonic() < until_s:
        time.sleep(0.0002)
    requests.detach()
    reply = _take_over(command, descriptors)
    os.write(reply, str(os.getpid()).encode())
    os.close(reply)
    return True


def _take_over(command: Command, descriptors: Sequence[int]) -> int:
    """Have what an `exec` would leave: descriptors, group, signals, limits. Returns the descriptor for the answer."""
    reply, *sent = [fcntl.fcntl(one, fcntl.F_DUPFD_CLOEXEC, max(command.targets) + 1) for one in descriptors]
    for target, descriptor in zip(command.targets, sent, strict=True):
        os.dup2(descriptor, target)
    _close_others({*command.targets, reply})
    if command.session:
        os.setsid()
    if command.group >= 0:
        os.setpgid(0, command.group)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.umask(command.mask)
    os.sched_setaffinity(0, command.cores)
    for limit, (soft, hard) in zip(_LIMITS, command.limits, strict=True):
        resource.setrlimit(limit, (soft, hard))
    if command.user is not None:
        os.setgroups(command.groups)
        os.setregid(command.user, command.user)
        os.setreuid(command.user, command.user)
        ctypes.CDLL(None).prctl(_SET_DUMPABLE, 1)  # the files of the process in /proc are this user's, as after an exec
    return reply


def _close_others(kept: set[int]) -> None:
    for path in list(Path("/proc/self/fd").iterdir()):
        if int(path.name) not in kept:
            with suppress(OSError):  # the one of the listing
                os.close(int(path.name))


def _own_template(command: Command) -> socket.socket | None:
    """For a command that starts a run: one more template, for the processes of the run. It ends with the command.

    In this new template, returns where the requests come from; in the copy itself, None.
    """
    _wanted.append(command.starts_runs)
    if not command.starts_runs:
        return None
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    if os.fork():
        theirs.close()
        TEMPLATE.inherit(ours)
        return None
    ours.detach()
    _leave_caller(theirs.fileno())
    return theirs


def _leave_caller(kept: int) -> None:
    """Hold nothing open that somebody waits to see closed, and take no Ctrl-C."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(nothing, number)
    _close_others({0, 1, 2, kept})
    os.setpgid(0, 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _rename([sys.executable, "-m", _MODULE])


def _become(command: Command) -> None:
    """Let Python look as it does before the first line of `python -m`."""
    coerced = dict([_COERCED]) if os.environ.get(_COERCED[0]) == _COERCED[1] else {}
    os.environ.clear()
    os.environ.update(coerced | command.environ | TEMPLATE.set_by_us)
    os.chdir(command.folder)
    time.tzset()
    tempfile.tempdir = None
    sys.dont_write_bytecode = bool(command.environ.get("PYTHONDONTWRITEBYTECODE"))
    sys.orig_argv[:] = command.words
    _rename(command.words)
    unbuffered = bool(command.environ.get("PYTHONUNBUFFERED"))
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        stream = _stream(number, name, unbuffered=unbuffered)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def _rename(words: Sequence[str]) -> None:
    """Take this command line: people, tools and tests know processes by it."""
    fields = Path("/proc/self/stat").read_text(errors="replace").rpartition(")")[2].split()
    begin, end = map(int, fields[_ARGUMENTS : _ARGUMENTS + 2])
    line = b"\0".join(os.fsencode(word) for word in words)[: max(0, end - begin - 1)]
    ctypes.memset(begin, 0, end - begin)
    ctypes.memmove(begin, line, len(line))


def _stream(number: int, name: str, *, unbuffered: bool) -> io.TextIOWrapper:
    """A standard stream, as Python makes it of this descriptor at its start."""
    reads = number == 0
    raw = io.FileIO(number, "r" if reads else "w", closefd=False)
    raw.name = f"<{name}>"  # type: ignore[misc]
    buffered: Any = io.BufferedReader(raw) if reads else raw if unbuffered else io.BufferedWriter(raw)
    return io.TextIOWrapper(
        buffered,
        encoding=getattr(sys, name).encoding,
        errors=getattr(sys, name).errors,
        newline=None if reads else "\n",
        line_buffering=not reads and not unbuffered and (name == "stderr" or raw.isatty()),
        write_through=unbuffered and not reads,
    )


def _load() -> None:
    """Import what a command or a process of a run may need."""
    importlib.import_module("camgraph.pipeline")
    TEMPLATE.set_by_us = {name: os.environ[name] for name in os.environ if name not in TEMPLATE.environ}
    for module in ("camgraph", "camgraph.pipeline.worker.fork_server", "camgraph.stages.video.examination"):
        importlib.import_module(module)
    for command in importlib.import_module("camgraph.tools.cli").COMMANDS.values():
        importlib.import_module(command.module, "camgraph.tools")
    registry = importlib.import_module("camgraph.pipeline.registry")
    for name in registry.stage_names():
        registry.find_stage(name)


def main() -> None:
    """The command line of `python -P -m camgraph_test_stages.warm_starts DESCRIPTOR`."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    requests = socket.socket(fileno=int(sys.argv[1]))
    TEMPLATE.environ = dict(os.environ)
    _load()
    install()
    gc.collect()
    gc.freeze()  # a look for garbage would write to all objects, and so copy their memory
    requests.send(b"ready")
    command = _serve(requests)
    while command and (own_requests := _own_template(command)):
        command = _serve(own_requests)
    if command:
        _become(command)
        code = _run(command)
        if command.module:
            _end(code)
        sys.exit(code)


def _run(command: Command) -> Any:
    """Run the program as `__main__`. Returns the argument of `sys.exit`, None at the program's end."""
    sys.modules["__main__"] = ModuleType("__main__")
    main = vars(sys.modules["__main__"])
    if command.module:
        spec = _spec_of(command.module)
        code, path, first = spec.loader.get_code(spec.name), spec.origin, command.folder
        main |= {"__spec__": spec, "__package__": spec.parent, "__file__": path, "__loader__": spec.loader}
        sys.modules.pop(spec.name, None)  # `python -m` runs it as `__main__`, before anybody imports it
    else:
        path = command.words[1 + command.is_safe]
        code, first = compile(Path(path).read_bytes(), path, "exec"), str(Path(path).resolve().parent)
        main |= {"__spec__": None, "__package__": None, "__file__": str(Path.cwd() / path)}
    sys.argv[:] = [path, *command.arguments]
    if not command.is_safe:
        sys.path.insert(0, first)
    try:
        exec(code, main)
    except SystemExit as end:
        return end.code
    return None


def _spec_of(module: str) -> Any:
    """Where this module is; of a package, its `__main__`."""
    spec = importlib.util.find_spec(module)
    assert spec is not None
    return spec if spec.submodule_search_locations is None else _spec_of(f"{module}.__main__")


def _end(code: Any) -> None:
    """End as Python does, without the last step: what this process shares with the template is not taken to pieces.

    A copy would copy all that memory for it, a tenth of a second. Threads are awaited, `atexit` is called, streams are
    flushed, and native libraries end as ever, while no thread of Python runs. Scripts end in full: what they leave to
    Python's end may be their subject.
    """
    if code is not None and not isinstance(code, int):
        sys.stderr.write(f"{code}\n")
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        code = code or _UNFLUSHED
    ctypes.PyDLL(None).exit((code or 0) & 0xFF)


if __name__ == "__main__":
    importlib.import_module(_MODULE).main()  # under its own name: what a copy runs is `__main__`
