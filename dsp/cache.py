"""Where dsp keeps what it downloads or makes once for a machine."""

import os
from pathlib import Path

__all__ = ["cache_folder"]


def cache_folder() -> Path:
    """Give the folder for it: ``DSP_CACHE``, else ``dsp`` below XDG's cache."""
    if own := os.environ.get("DSP_CACHE"):
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dsp"
