"""The embedded engine: a Run on the author's machine, with processes where a cluster has Pods."""
