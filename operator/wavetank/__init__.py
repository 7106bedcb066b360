"""Wavetank: benchmarks of AI agents as Kubernetes resources.

This package's root holds only its version, so that importing any part costs only that part.
"""

__version__ = "0.1.0"
