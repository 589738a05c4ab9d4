"""Other engines in `benchmarks.motion`, each in a process of its own, with which it takes turns."""

import contextlib
import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.motion_scenes import MovingScene

REPOSITORY = Path(__file__).resolve().parent.parent
PEERS = ("newton", "physx")
"""Names of the engines, whose programs are `benchmarks.engines.<name>_motion`."""


class PeerError(RuntimeError):
    """An engine did not answer; the message says why."""


class Peer:
    """An engine on the scene, in another process, by another interpreter."""

    def __init__(self, module: str, interpreter: str, scene: MovingScene, world_count: int):
        """Start the process and wait for its worlds.

        Args:
            module: Its program, which calls `benchmarks.engines.moving.serve`.
            interpreter: Python that has the engine.
            scene: What to simulate.
            world_count: Number of worlds.

        Raises:
            PeerError: The interpreter or the engine is missing, or it cannot simulate the scene.
        """
        scene.save()
        self._module = module
        self._seconds = 0.0
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 closed with the process
        command = [interpreter, "-W", "ignore", "-m", module, str(scene.path), "--worlds", str(world_count)]
        try:
            self._process = subprocess.Popen(
                command,
                cwd=REPOSITORY,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                text=True,
            )
        except OSError as error:
            self._errors.close()
            raise PeerError(f"{interpreter}: {error.strerror}") from None
        self.version: str = self._receive()["version"]

    def restart(self) -> None:
        """Put all worlds back to their starts."""
        self._ask(do="restart")

    def advance(self, count: int) -> None:
        """Make so many control steps."""
        self._seconds += self._ask(do="advance", count=count)["work"]

    def clear_report(self) -> None:
        """Let the figures begin anew."""
        self._ask(do="clear")

    def seconds(self) -> float:
        """Return the processor time that all control steps until now took [s]."""
        return self._seconds

    def quality(self) -> dict[str, str]:
        """Return how it goes, as cells of the table."""
        cells: dict[str, str] = self._ask(do="quality")["cells"]
        return cells

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(10.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        self._errors.close()

    def _ask(self, **request: object) -> dict[str, Any]:
        """Send a request and return the answer."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it has ended: there is no answer, which says why
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        return self._receive()

    def _receive(self) -> dict[str, Any]:
        """Return the next answer."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            status = self._process.wait()
            self._errors.seek(0)
            lines = self._errors.read().strip().splitlines() or [f"exit status {status}"]
            self.close()
            raise PeerError(lines[-1])
        answer: dict[str, Any] = json.loads(line)
        return answer
