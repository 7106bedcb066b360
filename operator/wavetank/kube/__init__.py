"""Talks to the API server: raw JSON over ``kubernetes.aio``, and an own list-and-watch.

The only package that imports ``kubernetes``. It decides nothing: it carries requests, names what
went wrong, and keeps to the rate it was given.
"""
