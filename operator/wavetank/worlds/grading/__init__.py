"""Graders over the end state of a world, and the two programs of a verifier Job."""
