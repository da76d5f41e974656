"""The `execd` command. The socket opens first: what is imported after it is not waited for by callers."""

from __future__ import annotations

import gc
import os
import sys
from dataclasses import replace

from execd import __version__, options
from execd.logs import INFO, WARNING, die, log
from execd.posix import listener, selfcare
from execd.settings import Settings


def main() -> None:
    """Run the daemon until SIGTERM or SIGINT; exit 0 then, 1 if it cannot listen, 2 for bad settings."""
    if sys.getfilesystemencoding() != "utf-8":
        # In any other locale a path or argument of a request would silently become other bytes.
        os.execv(sys.executable, [sys.orig_argv[0], "-X", "utf8", *sys.orig_argv[1:]])  # noqa: S606
    gc.disable()  # nothing that start-up makes is garbage; `gc.freeze` below keeps it out of later runs
    selfcare.open_standard_descriptors()
    selfcare.shed_inheritance()
    try:
        settings = options.from_sources(sys.argv[1:], os.environ)
    except options.HelpRequested:
        sys.stdout.write(options.help_text() + "\n")
        return
    except options.VersionRequested:
        sys.stdout.write(f"execd {__version__}\n")
        return
    except options.SettingError as error:
        die(str(error), 2)
        return
    selfcare.hide_secrets(settings.secrets)
    log.open(settings.log_file, settings.log_level, settings.secrets)
    run(settings)
    log.close()


def run(settings: Settings) -> None:
    """Listen, then load the rest and serve."""
    try:
        sock = listener.listen(settings.host, settings.port)
    except OSError as error:
        log.close()
        die(f"cannot listen on {settings.host}:{settings.port}: {error.strerror or error}", 1)
        return
    selfcare.settle_in()
    inherited = dict(os.environ)
    # Pydantic would look through every installed distribution for plug-ins (25 ms).
    os.environ["PYDANTIC_DISABLE_PLUGINS"] = "__all__"
    from execd.app import create_app
    from execd.server import Server

    port = sock.getsockname()[1]
    settings = replace(settings, port=port)
    log.write(INFO, "listening", host=settings.host, port=port, version=__version__, pid=os.getpid())
    if not settings.access_token:
        log.write(WARNING, "access_token_unset", meaning="anyone who can connect may run commands")
    server = Server(create_app(settings, inherited), settings)
    gc.freeze()
    gc.enable()
    server.run(sockets=[sock])
    log.write(INFO, "stopped")
