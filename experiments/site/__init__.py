"""The documentation site: tutorials are executed here, and pages that live elsewhere join it."""
