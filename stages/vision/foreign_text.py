"""As `pipeline.foreign_text`, for the names that stages show."""

from __future__ import annotations

from camgraph.pipeline.foreign_text import shown

__all__ = ["shown"]
