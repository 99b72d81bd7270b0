"""Counts fsync and fdatasync of this process through a small shim that is compiled on the spot and preloaded."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
static unsigned long calls;
unsigned long nitka_syncs(void) { return __atomic_load_n(&calls, __ATOMIC_SEQ_CST); }
int fsync(int fd) { int (*real)(int) = dlsym(RTLD_NEXT, "fsync"); __atomic_add_fetch(&calls, 1, __ATOMIC_SEQ_CST); return real(fd); }
int fdatasync(int fd) { int (*real)(int) = dlsym(RTLD_NEXT, "fdatasync"); __atomic_add_fetch(&calls, 1, __ATOMIC_SEQ_CST); return real(fd); }
"""  # noqa: E501


class Syncs:
    """The number of syncs so far; NaN where there is no compiler."""

    @staticmethod
    def preload() -> None:
        """Starts this very program again with the shim in front of the C library, if it is not there yet."""
        compiler = shutil.which("cc") or shutil.which("gcc")
        if compiler is None or "NITKA_SYNCS" in os.environ:
            return
        folder = tempfile.mkdtemp()
        source, shim = Path(folder) / "syncs.c", Path(folder) / "syncs.so"
        source.write_text(SHIM, encoding="utf-8")
        subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", shim, source, "-ldl"], check=True)
        environ = {**os.environ, "LD_PRELOAD": str(shim), "NITKA_SYNCS": str(shim)}
        sys.exit(subprocess.run([sys.executable, *sys.orig_argv[1:]], env=environ).returncode)

    @staticmethod
    def count() -> float:
        shim = os.environ.get("NITKA_SYNCS")
        if shim is None:
            return float("nan")
        counter = ctypes.CDLL(shim).nitka_syncs
        counter.restype = ctypes.c_ulong
        return float(counter())
