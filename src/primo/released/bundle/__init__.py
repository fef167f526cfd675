"""The release bundle: everything that may be published about one release, in one folder or .zip.

`write_bundle` makes it, `read_bundle` verifies it and refuses a tampered one. Files and fields are
described in docs/bundle.md; the JSON Schema of the manifest is in `schema/manifest.schema.json`.
"""

from primo.released.bundle.manifest import SCHEMA_FILE
from primo.released.bundle.read import Bundle, read_bundle
from primo.released.bundle.write import write_bundle

__all__ = ["SCHEMA_FILE", "Bundle", "read_bundle", "write_bundle"]
