"""Real servers of our own, started on a free port and stopped at will."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

_POSTGRES = Path("/usr/lib/postgresql")


@dataclass
class Server:
    """A server process: ``start`` and ``stop`` as often as wanted, the data stays."""

    url: str
    command: list[str]
    answers: Callable[[], bool]
    process: subprocess.Popen | None = field(default=None)

    def start(self) -> None:
        """Start it and wait until it answers."""
        self.process = subprocess.Popen(
            self.command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        for _ in range(600):
            if self.answers():
                return
            try:
                self.process.wait(0.05)
            except subprocess.TimeoutExpired:
                continue
            raise RuntimeError(f"{self.command[0]} ended with {self.process.returncode}")
        raise RuntimeError(f"{self.command[0]} does not answer")

    def stop(self, how: int = signal.SIGKILL) -> None:
        """Stop it, by default as a power cut would."""
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait()
            self.process = None

    def freeze(self) -> None:
        """Let it hang: connections stay open and nothing answers."""
        self._signal_all(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        self._signal_all(signal.SIGCONT)

    def _signal_all(self, what: int) -> None:
        pid = self.process.pid
        os.kill(pid, what)
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            os.kill(int(child), what)


def redis_server(folder: Path) -> Server | None:
    """Return a Redis server that keeps every write, ``None`` where there is no binary."""
    binary = shutil.which("redis-server")
    if binary is None:
        return None
    port = free_port()
    command = [binary, "--port", str(port), "--dir", str(folder), "--save", "",
               "--appendonly", "yes", "--appendfsync", "always"]  # fmt: skip

    def answers() -> bool:
        import redis

        client = redis.Redis(port=port, socket_timeout=1)
        try:
            return bool(client.ping())
        except redis.RedisError:
            return False
        finally:
            client.close()

    return Server(f"redis://127.0.0.1:{port}/0", command, answers)


def postgres_server(folder: Path) -> Server | None:
    """Return a PostgreSQL server with a fresh cluster, ``None`` where there are no binaries."""
    found = sorted(_POSTGRES.glob("*/bin/initdb"))
    if not found:
        return None
    binaries, port = found[-1].parent, free_port()
    data = folder / "cluster"
    data.mkdir(mode=0o700)
    as_user: list[str] = []
    if os.getuid() == 0:  # PostgreSQL refuses to run as root
        shutil.chown(data, "postgres")
        folder.chmod(0o755)
        for parent in folder.parents:
            if not os.access(parent, os.X_OK):
                parent.chmod(0o755)
        as_user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
    make = ["initdb", "-D", str(data), "-U", "postgres", "-A", "trust", "-N"]
    make[0] = str(binaries / make[0])
    subprocess.run([*as_user, *make], check=True, capture_output=True)
    command = [*as_user, str(binaries / "postgres"), "-D", str(data), "-p", str(port)]
    for setting in ("listen_addresses=127.0.0.1", f"unix_socket_directories={data}"):
        command += ["-c", setting]

    def answers() -> bool:
        import psycopg

        try:
            psycopg.connect(url, connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True

    url = f"postgresql://postgres@127.0.0.1:{port}/postgres"
    return Server(url, command, answers)


def chroma_server(folder: Path) -> Server:
    """Return a Chroma server over a folder."""
    port = free_port()
    program = str(Path(sys.executable).parent / "chroma")
    command = [program, "run", "--host", "127.0.0.1", "--port", str(port), "--path", str(folder)]
    url = f"http://127.0.0.1:{port}"

    def answers() -> bool:
        try:
            with urllib.request.urlopen(f"{url}/api/v2/heartbeat", timeout=2) as reply:  # noqa: S310
                return reply.status == 200
        except OSError:
            return False

    return Server(url, command, answers)


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
