"""What is tried in the client's place, and what shall come of it: one table, for whoever judges (§14.2).

`wrapper.isolation.probe` tries and says what happened; nothing in the probe knows what should have.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class Outcome(StrEnum):
    """What came of an attempt. ``unclear`` is as good as a hole: nothing is proven by it."""

    ALLOWED = "allowed"
    DENIED = "denied"
    UNCLEAR = "unclear"
    NOT_TRIED = "not tried"


class Layer(StrEnum):
    """What holds a client back, for the sentence that says what is missing."""

    USER = "the client's own user"
    FENCE = "the packet fence (nftables)"
    LANDLOCK = "Landlock"
    CONTAINER = "the container"
    LAUNCH = "the clean start"
    PROXY = "the egress proxy"


@dataclass(frozen=True, slots=True)
class Attempt:
    """``name`` is the probe's; ``what`` is for people. ``allowed``: whether it shall succeed.

    ``scoped`` attempts are denied by what Landlock knows from its version 6 on, and by nothing before.
    """

    name: str
    what: str
    layer: Layer
    allowed: bool = False
    scoped: bool = False


ATTEMPTS = (
    Attempt("key", "read the seat's private key", Layer.USER),
    Attempt("certs", "list the certificates' folder", Layer.USER),
    Attempt("state", "list the wrapper's own folder", Layer.USER),
    Attempt("proc_environ", "read the wrapper's environment", Layer.USER),
    Attempt("proc_task", "the same, by its thread", Layer.USER),
    Attempt("proc_maps", "read the wrapper's memory map", Layer.USER),
    Attempt("proc_mem", "open the wrapper's memory", Layer.USER),
    Attempt("proc_fd", "list the wrapper's open files", Layer.USER),
    Attempt("proc_root", "enter the wrapper's root", Layer.USER),
    Attempt("proc_cmdline", "read the wrapper's command line", Layer.LANDLOCK),
    Attempt("processes", "see which processes there are", Layer.LANDLOCK),
    Attempt("ptrace", "trace the wrapper", Layer.USER),
    Attempt("vm_read", "read from the wrapper's memory", Layer.USER),
    Attempt("fd_steal", "take an open file from the wrapper", Layer.USER),
    Attempt("signal", "send the wrapper a signal", Layer.USER),
    Attempt("setuid_root", "become root", Layer.USER),
    Attempt("setuid_wrapper", "become the wrapper's user", Layer.USER),
    Attempt("setgid_wrapper", "join the wrapper's group", Layer.USER),
    Attempt("capabilities", "hold a capability, or gain one by a program", Layer.LAUNCH),
    Attempt("processes_without_end", "start processes without a limit", Layer.LAUNCH),
    Attempt("memory", "have somebody else ended first when memory runs out", Layer.LAUNCH),
    Attempt("lasting_memory", "hold memory that outlives its processes (System V)", Layer.LAUNCH),
    Attempt("unshare_user", "make a user namespace", Layer.CONTAINER),
    Attempt("unshare_net", "make a network namespace", Layer.CONTAINER),
    Attempt("nft", "change the packet fence", Layer.USER),
    Attempt("raw_socket", "open a raw socket", Layer.USER),
    Attempt("packet_socket", "open a packet socket", Layer.USER),
    Attempt("vsock", "open a socket to the host of a virtual machine", Layer.LAUNCH),
    Attempt("netfilter_socket", "open a socket to the packet filter", Layer.LAUNCH),
    Attempt("io_uring", "make system calls past the filter (io_uring)", Layer.LAUNCH),
    Attempt("control", "connect to the Arbiter's control port", Layer.LANDLOCK),
    Attempt("multipath", "the same, by multipath TCP", Layer.LAUNCH),
    Attempt("data", "connect to the Arbiter's data port", Layer.LANDLOCK),
    Attempt("admin", "connect to the Arbiter's admin port", Layer.LANDLOCK),
    Attempt("arbiter_by_port", "connect to the Arbiter's address, on the port of the proxy", Layer.FENCE),
    Attempt("loopback", "connect to the wrapper on loopback", Layer.LANDLOCK),
    Attempt("loopback_by_port", "the same, on the port of the proxy", Layer.FENCE),
    Attempt("loopback6", "the same, by IPv6", Layer.FENCE),
    Attempt("listen", "listen on a TCP port", Layer.LANDLOCK),
    Attempt("abstract_socket", "connect to the wrapper's abstract socket", Layer.LANDLOCK, scoped=True),
    Attempt("path_socket", "connect to the wrapper's UNIX socket", Layer.USER),
    Attempt("dns", "ask the resolver", Layer.FENCE),
    Attempt("udp", "send a UDP packet to where TCP may go", Layer.FENCE),
    Attempt("udp_loopback", "send a UDP packet to loopback", Layer.FENCE),
    Attempt("icmp", "send a ping to where TCP may go", Layer.FENCE),
    Attempt("direct", "connect to a provider's address without the proxy", Layer.LANDLOCK),
    Attempt("direct_by_port", "the same, on the port of the proxy", Layer.FENCE),
    Attempt("reach", "connect to what it may reach", Layer.FENCE, allowed=True),
    Attempt("egress_refused", "have the proxy connect to a host that is not on the list", Layer.PROXY),
    Attempt("egress_allowed", "have the proxy connect to a host of the list", Layer.PROXY, allowed=True),
    Attempt("mounts", "use another volume: another seat's, the wrapper's", Layer.LANDLOCK),
    Attempt("rootfs", "write to the image's own files", Layer.CONTAINER),
    Attempt("home", "write to its own folder", Layer.LANDLOCK, allowed=True),
    Attempt("descriptors", "find an open file that it inherited", Layer.LAUNCH),
    Attempt("environment", "find a variable that is not its own", Layer.LAUNCH),
)
"""In the order in which they are told."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of one attempt, and whether it is as it shall be."""

    attempt: Attempt
    outcome: Outcome
    expected: Outcome
    detail: str

    @property
    def surprise(self) -> bool:
        """Whether it is not. What was not tried is no surprise, and no proof either."""
        return self.outcome not in (self.expected, Outcome.NOT_TRIED)


def judge(results: Mapping[str, tuple[Outcome, str]], *, scopes: bool) -> tuple[Verdict, ...]:
    """Hold what happened, by the attempts' names, against the table.

    ``scopes``: whether this kernel's Landlock should know signals and abstract sockets.
    """
    missing = Outcome.NOT_TRIED, "there is nothing here to try it on"
    return tuple(
        Verdict(attempt, outcome, _expected(attempt, scopes=scopes), detail)
        for attempt in ATTEMPTS
        for outcome, detail in (results.get(attempt.name, missing),)
    )


def holes(verdicts: Iterable[Verdict]) -> tuple[str, ...]:
    """What a seat says that finds its client not kept apart: the layer, and what it let through."""
    return tuple(
        f"{verdict.attempt.layer} does not hold: the client could {verdict.attempt.what}"
        if verdict.outcome is Outcome.ALLOWED
        else f"{verdict.attempt.layer} does not work: to {verdict.attempt.what} was {verdict.outcome} "
        f"({verdict.detail})"
        for verdict in verdicts
        if verdict.surprise
    )


def _expected(attempt: Attempt, *, scopes: bool) -> Outcome:
    allowed = attempt.allowed or (attempt.scoped and not scopes)
    return Outcome.ALLOWED if allowed else Outcome.DENIED
