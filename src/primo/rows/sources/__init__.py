"""Readers of rows in all formats; nothing here depends on privacy settings."""
