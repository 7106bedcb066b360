"""Builders and fakes for tests; nothing but tests imports this package."""
