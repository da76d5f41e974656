"""GET /capabilities shows every limit that can be set, as it is set."""

from __future__ import annotations

from dataclasses import fields

import pytest

from execd.options import SettingError, from_sources
from execd.settings import Settings
from tests.support.live import daemon

KIB, MIB = 1024, 1024 * 1024
SHOWN: dict[str, tuple[str, str, float]] = {
    "max_executions": ("17", "max_executions", 17),
    "max_requests": ("123", "max_requests", 123),
    "max_body": ("2MiB", "max_body_bytes", 2 * MIB),
    "output_memory": ("256KiB", "output_memory_bytes", 256 * KIB),
    "output_disk": ("3MiB", "output_disk_bytes", 3 * MIB),
    "output_total": ("5MiB", "output_total_bytes", 5 * MIB),
    "min_free_disk": ("7", "min_free_disk_percent", 7),
    "retention": ("90m", "retention_seconds", 5400),
    "max_records": ("99", "max_records", 99),
    "event_text": ("1000", "event_text_bytes", 1000),
    "ping_interval": ("1500ms", "ping_interval_seconds", 1.5),
    "drain_quiet": ("20ms", "drain_quiet_seconds", 0.02),
    "drain_timeout": ("2s", "drain_timeout_seconds", 2),
    "kill_grace": ("250ms", "kill_grace_seconds", 0.25),
    "keep_alive": ("80s", "keep_alive_seconds", 80),
    "list_limit": ("77", "list_limit", 77),
    "list_ceiling": ("88", "list_ceiling", 88),
    "list_timeout": ("6s", "list_timeout_seconds", 6),
    "list_depth": ("5", "list_depth", 5),
    "shutdown_timeout": ("4s", "shutdown_timeout_seconds", 4),
}
NO_LIMITS = {"host", "port", "access_token", "env_file", "log_file", "log_level", "state_dir", "line_endings"}
NO_LIMITS |= {"jupyter_host", "jupyter_token", "jupyter_poll", "roots"}


def test_every_setting_is_a_limit_that_is_shown_or_none() -> None:
    assert {spec.name for spec in fields(Settings)} == set(SHOWN) | NO_LIMITS


@pytest.mark.parametrize("by", ["flag", "variable"])
def test_every_limit_is_shown_as_it_was_set(by: str) -> None:
    specs = {spec.name: spec.metadata for spec in fields(Settings)}
    flags: list[str] = []
    env: dict[str, str] = {}
    for name, (value, _, _) in SHOWN.items():
        if by == "flag":
            flags += [f"--{specs[name]['flag']}", value]
        else:
            env[specs[name]["env"]] = value
    with daemon(*flags, env=env) as running:
        limits = running.client.get("/capabilities").json()["limits"]
    assert {key: limits[key] for _, key, _ in SHOWN.values()} == {key: n for _, key, n in SHOWN.values()}


def test_the_defaults_are_those_that_are_promised() -> None:
    with daemon() as running:
        limits = running.client.get("/capabilities").json()["limits"]
    promised = {
        "max_executions": 256,
        "output_memory_bytes": MIB,
        "output_disk_bytes": 64 * MIB,
        "output_total_bytes": 1024 * MIB,
        "min_free_disk_percent": 5,
        "retention_seconds": 86_400,
        "max_records": 4096,
        "event_text_bytes": 32 * KIB,
        "max_body_bytes": 16 * MIB,
        "drain_quiet_seconds": 0.05,
        "drain_timeout_seconds": 1,
        "kill_grace_seconds": 3,
        "shutdown_timeout_seconds": 10,
        "ping_interval_seconds": 3,
    }
    assert {key: limits[key] for key in promised} == promised


@pytest.mark.parametrize(
    ("flag", "lowest", "below", "highest", "above"),
    [
        ("max-executions", "1", "0", "100000", "100001"),
        ("max-requests", "8", "7", "1000000", "1000001"),
        ("max-body", "1KiB", "1023", "1GiB", "1073741825"),
        ("output-memory", "128KiB", "131071", "1GiB", "1073741825"),
        ("output-disk", "0", "-1", "1024GiB", "1025GiB"),
        ("output-total", "0", "-1", "1024GiB", "1025GiB"),
        ("min-free-disk", "0", "-1", "99", "100"),
        ("retention", "0", "-1s", "8760h", "8761h"),
        ("max-records", "1", "0", "1000000", "1000001"),
        ("event-text", "64", "63", "1MiB", "1048577"),
        ("ping-interval", "50ms", "49ms", "1h", "3601s"),
        ("drain-quiet", "0", "-1ms", "60s", "61s"),
        ("drain-timeout", "0", "-1ms", "60s", "61s"),
        ("kill-grace", "0", "-1ms", "300s", "301s"),
        ("keep-alive", "1s", "999ms", "24h", "86401s"),
        ("port", "0", "-1", "65535", "65536"),
    ],
)
def test_a_setting_is_taken_up_to_its_edges_and_refused_beyond(
    flag: str, lowest: str, below: str, highest: str, above: str
) -> None:
    for value in (lowest, highest):
        from_sources([f"--{flag}={value}"], {})
    for value in (below, above, "", "x", "1x", "NaN", "1e3"):
        with pytest.raises(SettingError) as refused:
            from_sources([f"--{flag}={value}"], {})
        assert f"--{flag} is {value!r}, allowed is" in str(refused.value)
        assert "\n" not in str(refused.value)
