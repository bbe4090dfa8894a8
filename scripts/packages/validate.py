"""Holds a list of modules against CycloneDX's schema."""
import sys

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

with open(sys.argv[1], encoding="utf-8") as f:
    error = JsonStrictValidator(SchemaVersion.V1_5).validate_str(f.read())
if error:
    sys.exit(f"{sys.argv[1]}: {error}")
