"""Folders in memory do not outlive their process, whatever ends it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dsp.spark.owned_folders import OwnedFolder

OWNER = """
import sys, time
from dsp.spark.owned_folders import OwnedFolder
folder = OwnedFolder(sys.argv[1])
(folder.path / "batch").write_bytes(b"x" * 1000)
print(folder.path, flush=True)
time.sleep(600)
"""


def test_what_a_killed_process_left_goes_with_the_next_and_what_lives_stays(tmp_path: Path) -> None:
    other = tmp_path / "dsp-spark-of-something-else"
    other.mkdir()
    owners = []
    for _ in range(2):
        owner = subprocess.Popen(
            [sys.executable, "-c", OWNER, str(tmp_path)], stdout=subprocess.PIPE, text=True
        )
        assert owner.stdout is not None
        owners.append((owner, Path(owner.stdout.readline().strip())))
    (killed, abandoned), (living, used) = owners
    killed.kill()
    killed.communicate()
    assert (abandoned / "batch").exists()
    mine = OwnedFolder(tmp_path)
    assert {*tmp_path.iterdir()} == {other, used, mine.path}
    living.kill()
    living.communicate()
    mine.close()
    mine.close()
    assert {*tmp_path.iterdir()} == {other, used}


def test_a_folder_that_is_forgotten_goes(tmp_path: Path) -> None:
    folder = OwnedFolder(tmp_path)
    (folder.path / "batch").write_bytes(b"x")
    del folder
    assert not [*tmp_path.iterdir()]


def test_a_folder_that_another_one_takes_for_abandoned_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[Path] = []

    def flock(lock: int, operation: int) -> None:
        if not taken:  # between making the file and locking it
            (folder,) = tmp_path.iterdir()
            taken.append(folder)
            (folder / "owner.lock").unlink()
            folder.rmdir()

    monkeypatch.setattr("fcntl.flock", flock)
    folder = OwnedFolder(tmp_path)
    assert folder.path != taken[0]
    assert os.listdir(folder.path) == ["owner.lock"]
    folder.close()
