"""Private PostgreSQL servers for tests, made from the installed binaries and gone with the test.

They listen on a socket in their own folder and nowhere else. PostgreSQL refuses to run as root; there it runs as
"postgres" or "nobody".
"""

from __future__ import annotations

import atexit
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import psycopg

SECONDS = 30
MEMORY = Path("/dev/shm")  # a file system in memory, where there is one
FAST = {"fsync": "off", "full_page_writes": "off", "autovacuum": "off"}  # for tests that lose no power


def binaries() -> Path | None:
    """The folder of PostgreSQL's binaries, if a server is installed."""
    finder = shutil.which("pg_config")
    if finder is None:
        return None
    folder = Path(subprocess.run([finder, "--bindir"], capture_output=True, text=True, check=True).stdout.strip())
    return folder if (folder / "initdb").exists() and (folder / "postgres").exists() else None


def _account() -> pwd.struct_passwd | None:
    """Whom to run as: nobody else, unless we are root."""
    if os.geteuid() != 0:
        return None
    names = {entry.pw_name: entry for entry in pwd.getpwall()}
    return names.get("postgres") or names["nobody"]


class Cluster:
    """One server with its folder, which is also where its socket lies."""

    def __init__(self, folder: Path, binaries: Path) -> None:
        self.folder = folder
        self._binaries = binaries
        self._server: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """Of the server, while it runs."""
        return self._server.pid if self._server else None

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def url(self, database: str = "postgres", *others: Cluster) -> str:
        """The address of a database, here or wherever one of `others` is the primary."""
        hosts = ",".join(str(cluster.folder) for cluster in (self, *others))
        return f"postgresql:///{database}?host={hosts}&user=nitka"

    def init(self) -> None:
        """Becomes a new server, by a copy: initdb takes ten times as long."""
        subprocess.run(["cp", "-a", _template(self._binaries), self.data], check=True, timeout=SECONDS)

    def init_anew(self) -> None:
        self._run("initdb", "--pgdata", self.data, "--auth=trust", "--username=nitka", "--encoding=UTF8", "--no-sync")

    def copy_of(self, primary: Cluster, slot: str) -> None:
        """Becomes a standby of the primary, which knows it as `slot`."""
        source = f"host={primary.folder} user=nitka application_name={slot}"
        self._run(
            "pg_basebackup",
            "--pgdata",
            self.data,
            "-d",
            source,
            "-R",
            "-C",
            "-S",
            slot,
            "--checkpoint=fast",
            "--no-sync",
        )

    def start(self, **settings: str) -> None:
        """Starts the server and waits until it answers."""
        settings = {"listen_addresses": "", "unix_socket_directories": str(self.folder), **settings}
        command = [self._binaries / "postgres", "-D", self.data]
        command += [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        with (self.folder / "log").open("ab") as log:
            server: subprocess.Popen[bytes] = subprocess.Popen(
                list(map(str, command)), stdout=log, stderr=log, **self._as()
            )
        self._server = server
        end = time.monotonic() + SECONDS
        while self._tool("pg_isready", "-h", self.folder, "-q").returncode:
            assert time.monotonic() < end and server.poll() is None, (self.folder / "log").read_text()
            time.sleep(0.05)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Ends it: SIGINT breaks its connections and shuts down, SIGQUIT does not even shut down."""
        server, self._server = self._server, None
        if server is not None:
            server.send_signal(how)
            server.wait(SECONDS)

    def kill(self) -> None:
        """SIGKILL to the server and to all its processes at once, as if the machine were gone."""
        assert self._server is not None
        found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(self._server.pid)], capture_output=True, text=True)
        for pid in (self._server.pid, *map(int, found.stdout.split())):
            with _gone_is_fine():
                os.kill(pid, signal.SIGKILL)
        self._server.wait(SECONDS)
        self._server = None

    def promote(self) -> None:
        with psycopg.connect(self.url(), autocommit=True) as connection:
            assert connection.execute("select pg_promote()").fetchone() == (True,)

    def execute(self, statement: str, database: str = "postgres") -> list[tuple[Any, ...]]:
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def _run(self, tool: str, *arguments: object) -> None:
        done = self._tool(tool, *arguments)
        assert done.returncode == 0, done.stderr.decode()

    def _tool(self, tool: str, *arguments: object) -> subprocess.CompletedProcess[bytes]:
        command = [str(self._binaries / tool), *map(str, arguments)]
        return subprocess.run(command, capture_output=True, timeout=SECONDS, **self._as())

    def _as(self) -> dict[str, Any]:
        account = _account()
        who = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []} if account else {}
        return {"cwd": self.folder, "env": {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}, **who}


@cache
def _template(binaries: Path) -> Path:
    """What initdb makes, made once in a process and gone with it."""
    held = ExitStack()
    atexit.register(held.close)
    cluster = held.enter_context(new_cluster(binaries))
    cluster.init_anew()
    return cluster.data


@contextmanager
def _gone_is_fine() -> Iterator[None]:
    try:
        yield
    except ProcessLookupError:
        pass


@contextmanager
def new_cluster(binaries: Path, where: Path | None = None) -> Iterator[Cluster]:
    """A folder for a server, owned by who runs it; the server is ended and the folder removed. By default it lies in
    memory.
    """
    folder = Path(tempfile.mkdtemp(prefix="nitka-pg-", dir=where or (MEMORY if MEMORY.is_dir() else None)))
    account = _account()
    if account is not None:
        os.chown(folder, account.pw_uid, account.pw_gid)
    cluster = Cluster(folder, binaries)
    try:
        yield cluster
    finally:
        cluster.stop(signal.SIGQUIT)
        shutil.rmtree(folder, ignore_errors=True)
