"""A disk that is soon full."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from camgraph_test_stages import small_disks


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MB."""
    with small_disks.small_disk(tmp_path, 1) as disk:
        yield disk
