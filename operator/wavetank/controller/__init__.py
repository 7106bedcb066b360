"""The operator: watches the three kinds and brings each object to where its spec wants it.

The only package that imports kopf and prometheus_client. Handlers only enqueue a key; a
reconciler observes, asks ``core`` and applies.
"""
