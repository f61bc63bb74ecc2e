"""A network that can be cut: what goes through stops moving, and no end is told."""

from __future__ import annotations

import contextlib
import socket
import threading

from .servers import free_port


class Cable:
    """Forwards a port of this machine to another one, until it is cut.

    Args:
        target: port that is forwarded to.
    """

    def __init__(self, target: int) -> None:
        self.port = free_port()
        self.cuts = 0
        self._target = target
        self._whole = threading.Event()
        self._whole.set()
        self._sockets: list[socket.socket] = []
        self._server = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Let nothing through: bytes wait where they are, connections stay open."""
        self.cuts += 1
        self._whole.clear()

    def mend(self) -> None:
        """Let everything through again."""
        self._whole.set()

    def close(self) -> None:
        """End all connections."""
        self._whole.set()
        for one in (self._server, *self._sockets):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        while True:
            try:
                here, _ = self._server.accept()
                self._whole.wait()
                there = socket.create_connection(("127.0.0.1", self._target))
            except OSError:
                return
            self._sockets += [here, there]
            for pair in ((here, there), (there, here)):
                threading.Thread(target=self._carry, args=pair, daemon=True).start()

    def _carry(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                self._whole.wait()
                sink.sendall(data)
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_WR)
