"""A daemon of Spark as a child process, and the address that it tells in its log."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from dsp.errors import DspError
from dsp.spark.java import java_home

__all__ = ["Daemon", "SparkStartError"]

_LOG_LINES = 40


class SparkStartError(DspError):
    """A daemon was started and did not come up; the message ends with the end of its log."""


class Daemon:
    """A Java process of Spark that ends with the process that started it, whatever ends that one.

    Args:
        name: for messages, and of its log.
        command: arguments of ``spark-class``.
        folder: where it works and logs.
        memory: of its heap, as Java writes it.
    """

    def __init__(self, name: str, command: Sequence[str], folder: Path, memory: str) -> None:
        import pyspark

        self._name = name
        self._log = folder / f"{name}.log"
        home = Path(pyspark.__file__).parent
        environment = os.environ | {
            "SPARK_HOME": str(home),
            "JAVA_HOME": str(java_home()),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_MEMORY": memory,
            "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
            "SPARK_LOG_DIR": str(folder),
            "SPARK_WORKER_DIR": str(folder / "work"),
            "SPARK_LOCAL_DIRS": str(folder / "local"),
        }
        # Its executors must not find a settings folder or a master of the user's.
        for variable in ("SPARK_CONF_DIR", "SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED"):
            environment.pop(variable, None)
        with self._log.open("ab") as output:
            self._process = subprocess.Popen(
                [str(home / "bin" / "spark-class"), *command],
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # a group of its own: executors are its children
            )
        # If we die, even by SIGKILL, our end of the pipe closes and the guard ends the group.
        self._guard = subprocess.Popen(
            ["sh", "-c", 'cat >/dev/null; kill -KILL -"$1"', "guard", str(self._process.pid)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    @property
    def pid(self) -> int:
        """Its process id, which is that of its group too."""
        return self._process.pid

    def wait_for(self, pattern: str, patience: float) -> str:
        """Wait until its log has a line; give the first group of the pattern.

        Raises:
            SparkStartError: it ended, or did not get there in time.
        """
        until = time.monotonic() + patience
        while True:
            if match := re.search(pattern, self._log.read_text(errors="replace")):
                return match[1]
            code = self._process.poll()
            if code is not None or time.monotonic() > until:
                what = "gave no sign" if code is None else f"ended with exit code {code}"
                lines = self._log.read_text(errors="replace").splitlines()[-_LOG_LINES:]
                raise SparkStartError(
                    f"the {self._name} {what} within {patience:g} s; its log ends:\n"
                    + "\n".join(lines)
                )
            time.sleep(0.05)

    def stop(self, *, kill: bool = False, patience: float = 10.0) -> None:
        """End it and what it started (SIGTERM, or SIGKILL). Safe to repeat."""
        if self._process.poll() is None:
            if not kill:
                self._process.terminate()
                try:
                    self._process.wait(patience)
                except subprocess.TimeoutExpired:
                    kill = True
            if kill:
                self._process.kill()
                self._process.wait()
        # Closing the pipe lets the guard kill what is left of the group, executors included.
        if self._guard.stdin is not None and not self._guard.stdin.closed:
            self._guard.stdin.close()
        self._guard.wait()
