"""Pulls the registry's model in a process of its own: run by tests."""

from conftest import model_asset

from camgraph.tools.assets.pull import pull

print(pull(model_asset(), lambda *progress: print(*progress, flush=True)))  # noqa: T201
