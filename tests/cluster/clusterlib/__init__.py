"""A single-node Kubernetes on this machine, for tests and the demo. See tests/cluster/README.md.

Standard library only: it runs before any virtual environment exists. Nothing here is imported by the product.
"""
