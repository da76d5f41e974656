"""What handlers get from the application, typed."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from starlette.requests import Request

    from execd.services.capabilities import Capabilities
    from execd.services.commands import Commands
    from execd.services.directories import Directories
    from execd.services.downloads import Downloads
    from execd.services.files import Files
    from execd.services.filesystem import Filesystem
    from execd.services.listings import Listings
    from execd.services.readiness import Readiness
    from execd.services.replacements import Replacements
    from execd.services.uploads import Uploads
    from execd.settings import Settings


class State(TypedDict):
    """Made once by the lifespan; `request.state` of every request has these."""

    settings: Settings
    commands: Commands
    readiness: Readiness
    capabilities: Capabilities
    filesystem: Filesystem
    downloads: Downloads
    files: Files
    directories: Directories
    replacements: Replacements
    listings: Listings
    uploads: Uploads


if TYPE_CHECKING:
    TypedRequest = Request[State]
