"""Helpers without any knowledge of privacy or rows."""
