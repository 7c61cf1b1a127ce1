"""A server of one's own, where none runs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from typing import List, Optional

from .errors import Unreachable


class Server:
    """``scaffold lab serve`` as a child of this program, on a Unix socket that nobody else knows. It ends
    with this program, however that ends, and takes the labs down that were brought up through it."""

    def __init__(self, binary: Optional[str] = None) -> None:
        """``binary`` is the path of scaffold: by default $SCAFFOLD, or scaffold in PATH."""
        command = binary or os.environ.get("SCAFFOLD") or "scaffold"
        found = shutil.which(command)
        if found is None:
            raise Unreachable(f"{command}: there is no such program: give its path as $SCAFFOLD or binary=")
        self._dir = tempfile.mkdtemp(prefix="scaffold-lab-")
        try:
            self._start(found)
        except BaseException:
            shutil.rmtree(self._dir, ignore_errors=True)
            raise

    def _start(self, binary: str) -> None:
        argv: List[str] = [binary, "lab", "serve", "--listen", f"unix:{self._dir}/api.sock", "-o", "json"]
        log_path = os.path.join(self._dir, "log")
        with open(log_path, "wb") as log:
            self._process = subprocess.Popen(
                argv + ["--until-eof", "--down"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for this program: it ends the server in its own time
            )
        assert self._process.stdout is not None
        text = b""
        for line in self._process.stdout:
            text += line
            if line == b"}\n":
                break
        try:
            self.url = str(json.loads(text)["listen"])
        except (ValueError, KeyError):
            self._process.wait()
            with open(log_path, errors="replace") as log_text:
                raise Unreachable(f"{binary} lab serve: {log_text.read().strip()}") from None

    def close(self) -> None:
        """End the server and wait until its labs are down."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        shutil.rmtree(self._dir, ignore_errors=True)
