"""May this address be asked by the service? Only public ones, and the one that was checked is the one that is asked.

A receiver's name is resolved once for each attempt; every address it has must be public, and the connection goes to the
address that was looked at, not to the name: a name that changes between check and use gains nothing.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from autoxrd.errors import UserInputError

__all__ = ["Destination", "Guard", "Resolver", "resolve"]

Resolver = Callable[[str, int], Sequence[str]]
"""Gives the IP addresses of a host name and port."""

_NAT64 = ipaddress.ip_network("64:ff9b::/96")
LONGEST_URL = 2000


@dataclass(frozen=True, slots=True)
class Destination:
    """Where a message goes.

    Args:
        host: name that the receiver is known by, for the certificate.
        authority: as the ``Host`` header has it.
        pinned: the address with the IP address in place of the name.
    """

    host: str
    authority: str
    pinned: str


def resolve(host: str, port: int) -> list[str]:
    """Return the IP addresses of a host, as the system knows them.

    Raises:
        OSError: it has none.
    """
    return sorted({str(found[4][0]) for found in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)})


class Guard:
    """Decides where the service may send.

    Args:
        allow_loopback: let this machine itself, and plain http, be asked: for tests and a laptop only.
        resolver: how names are looked up.
    """

    def __init__(self, *, allow_loopback: bool = False, resolver: Resolver = resolve) -> None:
        self._allow_loopback = allow_loopback
        self._resolver = resolver

    def check(self, url: str) -> Destination:
        """Return where a message to this address may go.

        Raises:
            UserInputError: ``callback_invalid``, it has no sound form; ``callback_unresolved``, its name has no
                address; ``callback_private``, it leads inside.
        """
        parts = self._parts(url)
        host = parts.hostname or ""
        port = parts.port or (443 if parts.scheme == "https" else 80)
        try:
            addresses = self._resolver(host, port)
        except OSError as error:
            raise UserInputError("callback_unresolved", f"The name {host:.100} has no address: {error}.") from error
        if not addresses:
            raise UserInputError("callback_unresolved", f"The name {host:.100} has no address.")
        if not all(self._public(address) for address in addresses):
            raise UserInputError("callback_private", f"{host:.100} leads to an address that is not public.")
        chosen = addresses[0]
        numeric = f"[{chosen}]" if ":" in chosen else chosen
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        return Destination(host, parts.netloc, f"{parts.scheme}://{numeric}:{port}{path}")

    def _parts(self, url: str) -> SplitResult:
        schemes = ("https", "http") if self._allow_loopback else ("https",)
        try:
            parts = urlsplit(url)
            sound = parts.scheme in schemes and bool(parts.hostname) and parts.port != 0
            plain = url.isascii() and url.isprintable() and " " not in url and len(url) <= LONGEST_URL
        except ValueError:
            sound = plain = False
        if not (sound and plain) or parts.username is not None or parts.password is not None or parts.fragment:
            wanted = "http(s)" if self._allow_loopback else "https"
            raise UserInputError(
                "callback_invalid", f"An address for events is {wanted}://host[:port]/path, without user or fragment."
            )
        return parts

    def _public(self, text: str) -> bool:
        try:
            address = ipaddress.ip_address(text.partition("%")[0])
        except ValueError:
            return False
        inner = _embedded(address)
        if self._allow_loopback and inner.is_loopback:
            return True
        return inner.is_global and not (inner.is_multicast or inner.is_reserved or inner.is_unspecified)


def _embedded(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """Return the IPv4 address that an IPv6 address stands for, where it does: it is what would be reached."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else address)
