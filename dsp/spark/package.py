"""dsp for executors on other machines, in the form that Spark takes: a wheel, named ``.zip``."""

import hashlib
import os
import zipfile
from pathlib import Path

import dsp
from dsp.cache import cache_folder
from dsp.spark.errors import SparkUnavailable

__all__ = ["executor_package"]

# As in every zip archive that has no times of its own: the same files give the same bytes.
_EPOCH = (1980, 1, 1, 0, 0, 0)


def executor_package() -> Path:
    """Give a ``.zip`` with all modules of this dsp, to be sent to executors.

    It holds what the wheel holds. Executors need what dsp depends on by themselves, as they need
    what your functions import.

    Raises:
        SparkUnavailable: the cache folder cannot be written.
    """
    root = Path(dsp.__file__).parent
    files = sorted(path for path in root.rglob("*") if _belongs(path))
    digest = hashlib.sha256()
    for path in files:
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    target = cache_folder() / "spark" / f"dsp-{dsp.__version__}-{digest.hexdigest()[:12]}.zip"
    try:
        if not target.exists():
            _write(target, root, files)
    except OSError as error:
        raise SparkUnavailable(
            f"dsp for executors cannot be packed: {error}",
            "set DSP_CACHE to a folder that can be written",
        ) from error
    return target


def _belongs(path: Path) -> bool:
    return path.suffix in (".py", ".pyi") or path.name == "py.typed"


def _write(target: Path, root: Path, files: list[Path]) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    new = target.with_name(f"{target.name}.{os.getpid()}")
    with zipfile.ZipFile(new, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in files:
            name = (Path("dsp") / path.relative_to(root)).as_posix()
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), path.read_bytes(), zipfile.ZIP_DEFLATED)
    new.rename(target)  # others may be at it too
