"""What clients say of a file they send. Null is the same as absent."""

from __future__ import annotations

from execd.models.files import Permission
from execd.models.types import NonEmpty


class UploadMetadata(Permission):
    """A part `metadata` of `POST /files/upload`."""

    path: NonEmpty
