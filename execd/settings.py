"""The one settings object, made once from flags and environment, then passed down. Stdlib only: it is
needed before the socket opens.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from execd import values


def _setting(
    default: object,
    parse: Callable[[str], object],
    help_text: str,
    *,
    flag: str | None = None,
    env: str | None = None,
    show: Callable[[Any], str] = str,
    secret: bool = False,
) -> Any:
    """One field of Settings: how it is read, and what `--help` and the docs say of it."""
    metadata = {
        "parse": parse,
        "help": help_text,
        "flag": flag,
        "env": env,
        "show": show,
        "secret": secret,
    }
    if default is None or isinstance(default, (str, int, float)):
        return field(default=default, metadata=metadata)
    raise TypeError(default)


@dataclass(frozen=True, slots=True)
class Settings:
    """All that can be set. Times in seconds, sizes in bytes."""

    host: str = _setting(
        "0.0.0.0", values.text, "IPv4 or IPv6 address to listen on", flag="host", env="EXECD_HOST"
    )
    port: int = _setting(
        44772,
        values.whole(0, 65535),
        "TCP port to listen on; 0: any free one, written to the log",
        flag="port",
        env="OPENSANDBOX_EXECD_PORT",
    )
    access_token: str = _setting(
        "",
        values.token,
        "callers must send it as X-EXECD-ACCESS-TOKEN; empty: no check",
        flag="access-token",
        env="EXECD_ACCESS_TOKEN",
        secret=True,
    )
    env_file: str = _setting(
        "",
        values.text,
        "file of KEY=VALUE lines, read for every command; empty: none",
        flag="envs",
        env="EXECD_ENVS",
    )
    log_file: str = _setting(
        "",
        values.text,
        "where the log goes (one older file of 16MiB is kept); empty: stderr",
        flag="log-file",
        env="EXECD_LOG_FILE",
    )
    log_level: int = _setting(
        6,
        values.log_level,
        "0 (least) to 7 (debug), or a syslog level's name; 6 logs a line a request",
        flag="log-level",
        env="EXECD_LOG_LEVEL",
    )
    state_dir: str = _setting(
        "",
        values.text,
        "directory (made 0700) for kept output; empty: execd-UID-PORT in the temp directory",
        flag="state-dir",
        env="EXECD_STATE_DIR",
    )
    line_endings: str = _setting(
        "keep",
        values.one_of("keep", "strip"),
        "text of output events: keep whole lines with their ends, or strip to one line an event",
        flag="line-endings",
        env="EXECD_LINE_ENDINGS",
    )
    shutdown_timeout: float = _setting(
        10.0,
        values.duration_from(0, 3600),
        "how long a stop may take to end commands and finish streams",
        flag="graceful-shutdown-timeout",
        env="EXECD_API_GRACE_SHUTDOWN",
        show=values.show_duration,
    )
    kill_grace: float = _setting(
        3.0,
        values.duration_from(0, 300),
        "time between SIGTERM and SIGKILL when a command is ended",
        flag="kill-grace",
        env="EXECD_KILL_GRACE",
        show=values.show_duration,
    )
    max_executions: int = _setting(
        256,
        values.whole(1, 100_000),
        "commands running at once; more are refused with 429",
        flag="max-executions",
        env="EXECD_MAX_EXECUTIONS",
    )
    max_requests: int = _setting(
        4096,
        values.whole(8, 1_000_000),
        "requests answered at once; more are refused with 503",
        flag="max-requests",
        env="EXECD_MAX_REQUESTS",
    )
    max_body: int = _setting(
        16 * values.MIB,
        values.size_from(values.KIB, values.GIB),
        "largest JSON body; a larger one is refused with 413",
        flag="max-body",
        env="EXECD_MAX_BODY",
        show=values.show_size,
    )
    output_memory: int = _setting(
        values.MIB,
        values.size_from(128 * values.KIB, values.GIB),
        "output of one command kept in memory",
        flag="output-memory",
        env="EXECD_OUTPUT_MEMORY",
        show=values.show_size,
    )
    output_disk: int = _setting(
        64 * values.MIB,
        values.size_from(0, 1024 * values.GIB),
        "output of one command kept on disk; then the oldest goes, or a lagging reader slows the command",
        flag="output-disk",
        env="EXECD_OUTPUT_DISK",
        show=values.show_size,
    )
    output_total: int = _setting(
        values.GIB,
        values.size_from(0, 1024 * values.GIB),
        "output of all commands on disk; the oldest finished one goes first",
        flag="output-total",
        env="EXECD_OUTPUT_TOTAL",
        show=values.show_size,
    )
    min_free_disk: int = _setting(
        5,
        values.whole(0, 99),
        "percent of the disk that kept output leaves free",
        flag="min-free-disk",
        env="EXECD_MIN_FREE_DISK",
    )
    retention: float = _setting(
        86400.0,
        values.duration_from(0, 365 * 86400),
        "how long the record of a finished command is kept",
        flag="retention",
        env="EXECD_RETENTION",
        show=values.show_duration,
    )
    max_records: int = _setting(
        4096,
        values.whole(1, 1_000_000),
        "finished commands kept; the oldest goes first",
        flag="max-records",
        env="EXECD_MAX_RECORDS",
    )
    event_text: int = _setting(
        32 * values.KIB,
        values.size_from(64, values.MIB),
        "output bytes in one event; longer lines are split",
        flag="event-text",
        env="EXECD_EVENT_TEXT",
        show=values.show_size,
    )
    ping_interval: float = _setting(
        3.0,
        values.duration_from(0.05, 3600),
        "silence on a stream before a ping event",
        flag="ping-interval",
        env="EXECD_PING_INTERVAL",
        show=values.show_duration,
    )
    drain_quiet: float = _setting(
        0.05,
        values.duration_from(0, 60),
        "after a command's exit, silence of its pipes that ends its stream",
        flag="drain-quiet",
        env="EXECD_DRAIN_QUIET",
        show=values.show_duration,
    )
    drain_timeout: float = _setting(
        1.0,
        values.duration_from(0, 60),
        "after a command's exit, longest wait for that silence",
        flag="drain-timeout",
        env="EXECD_DRAIN_TIMEOUT",
        show=values.show_duration,
    )
    keep_alive: float = _setting(
        120.0,
        values.duration_from(1, 86400),
        "idle time after which a connection is closed",
        flag="keep-alive",
        env="EXECD_KEEP_ALIVE",
        show=values.show_duration,
    )
    roots: str = _setting(
        "",
        values.directories,
        "directories, separated by colons, that file routes are limited to; empty: no limit",
        flag="roots",
        env="EXECD_ROOTS",
    )
    list_limit: int = _setting(
        10_000,
        values.whole(1, 100_000),
        "entries in a page of a listing or search that names no limit",
        flag="list-limit",
        env="EXECD_LIST_LIMIT",
    )
    list_ceiling: int = _setting(
        100_000,
        values.whole(1, 1_000_000),
        "most entries in a page, whatever is asked for",
        flag="list-ceiling",
        env="EXECD_LIST_CEILING",
    )
    list_timeout: float = _setting(
        30.0,
        values.duration_from(0.01, 3600),
        "longest walk for a page; then it is truncated",
        flag="list-timeout",
        env="EXECD_LIST_TIMEOUT",
        show=values.show_duration,
    )
    list_depth: int = _setting(
        64,
        values.whole(1, 1000),
        "deepest level of one listing or search; below it is truncated",
        flag="list-depth",
        env="EXECD_LIST_DEPTH",
    )
    jupyter_host: str = _setting(
        "",
        values.jupyter_host,
        "Jupyter server's address; accepted, no route uses it yet",
        flag="jupyter-host",
        env="JUPYTER_HOST",
    )
    jupyter_token: str = _setting(
        "",
        values.text,
        "Jupyter server's token; accepted, no route uses it yet",
        flag="jupyter-token",
        env="JUPYTER_TOKEN",
        secret=True,
    )
    jupyter_poll: float = _setting(
        0.1,
        values.duration_from(0, 60),
        "accepted for compatibility; nothing polls",
        flag="jupyter-idle-poll-interval",
        env="EXECD_JUPYTER_IDLE_POLL_INTERVAL",
        show=values.show_duration,
    )

    @property
    def root_list(self) -> list[str]:
        """The directories of `roots`."""
        return [root for root in self.roots.split(":") if root]

    @property
    def state_path(self) -> str:
        """The state directory to use, before the port is known to be free."""
        return self.state_dir or os.path.join(tempfile.gettempdir(), f"execd-{os.geteuid()}-{self.port}")

    @property
    def secrets(self) -> list[str]:
        """Values that no log, child or answer may show."""
        return [value for value in (self.access_token, self.jupyter_token) if value]
