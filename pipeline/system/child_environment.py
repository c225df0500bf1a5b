"""Which variables of the environment the processes of a run get: those that Python and native libraries need.

The user's environment may hold the passwords of all cameras. The processes of a run get theirs in their settings, by an
inherited socket, and must not hand those of all cameras on to the libraries they load. A stage that reads a variable
declares it (`Stage.environment`); a graph names more under `pass_environment`. These two travel by the socket as well,
and are set before the stages are made: the /proc of a process does not show them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

from camgraph.pipeline.system.paths import CACHE_DIR, RUN_DIR, STATE_DIR
from camgraph.pipeline.system.redaction import is_called_secret, redact_urls
from camgraph.pipeline.system.service_manager import VARIABLES as OF_SERVICE_MANAGER

_OF_PYTHON = (
    *("PYTHONPATH", "PYTHONHOME", "PYTHONSAFEPATH", "PYTHONNOUSERSITE", "PYTHONUSERBASE", "PYTHONPLATLIBDIR"),
    *("PYTHONCASEOK", "PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX", "PYTHONOPTIMIZE", "PYTHONNODEBUGRANGES"),
    *("PYTHONUNBUFFERED", "PYTHONIOENCODING", "PYTHONUTF8", "PYTHONCOERCECLOCALE", "PYTHONWARNDEFAULTENCODING"),
    *("PYTHONHASHSEED", "PYTHONINTMAXSTRDIGITS", "PYTHONMALLOC", "PYTHONMALLOCSTATS", "PYTHON_CPU_COUNT", "PYTHON_GIL"),
    *("PYTHON_JIT", "PYTHONWARNINGS", "PYTHONDEVMODE", "PYTHONDEBUG", "PYTHONVERBOSE", "PYTHONFAULTHANDLER"),
    *("PYTHONTRACEMALLOC", "PYTHONPROFILEIMPORTTIME", "PYTHONASYNCIODEBUG", "PYTHONPERFSUPPORT"),
    *("PYTHON_PERF_JIT_SUPPORT", "PYTHONBREAKPOINT"),
)

HANDED_ON = (
    # The user and the login.
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "TZ", "LANG", "LANGUAGE", "LC_*", "TERM", "XDG_*"),
    # How programs are loaded, and how Python behaves.
    *("LD_LIBRARY_PATH", "LD_PRELOAD", "VIRTUAL_ENV", *_OF_PYTHON, "MALLOC_*", "GLIBC_TUNABLES", "COVERAGE_*"),
    # Threads and numbers.
    *("OMP_*", "GOMP_*", "KMP_*", "MKL_*", "OPENBLAS_*", "GOTO_*", "BLIS_*", "VECLIB_*", "NUMEXPR_*"),
    # Inference and video.
    *("CUDA_*", "NVIDIA_*", "CUDNN_*", "TENSORRT_*", "TRT_*", "NCCL_*", "ORT_*", "ONNXRUNTIME_*"),
    *("OPENVINO_*", "OV_*", "OPENCV_*", "LIBVA_*", "VDPAU_*", "DRI_*"),
    # Which certificates are trusted.
    *("SSL_CERT_FILE", "SSL_CERT_DIR"),
    # Our own, and the folders that systemd gives to a unit.
    *(CACHE_DIR, STATE_DIR, RUN_DIR, "CACHE_DIRECTORY", "STATE_DIRECTORY", "RUNTIME_DIRECTORY"),
)
"""Names, and beginnings of names with `*`. docs/operations.md has the same list.

Prefixes are for libraries with many variables. Users choose their own names, such as CAMGRAPH_DOOR_PASSWORD or
PYTHON_PW, so the variables of camgraph and Python are named one by one.
"""


def handed_on(environ: Mapping[str, str]) -> dict[str, str]:
    """The part of `environ` that every process of a run gets.

    Of those that only a beginning names, none that is called a secret, and none whose value holds one that this process
    hides (`pipeline.system.redaction`): a password of the graph, or credentials in an address.
    """
    whole = [one for one in HANDED_ON if "*" not in one]
    begun = named(set(HANDED_ON).difference(whole), environ)
    harmless = {
        name: value for name, value in begun.items() if not is_called_secret(name) and redact_urls(value) == value
    }
    return named(whole, environ) | harmless


def named(patterns: Iterable[str], environ: Mapping[str, str]) -> dict[str, str]:
    """The variables with these names; `*` stands for any letters.

    Those of the service manager are never among them: only the process that it has started may speak to it.
    """
    known = tuple(patterns)
    others = {name: value for name, value in environ.items() if name not in OF_SERVICE_MANAGER}
    return {name: value for name, value in others.items() if any(fnmatchcase(name, one) for one in known)}
