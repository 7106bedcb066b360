"""Pure builders of the Kubernetes objects that the operator creates.

``rollout`` builds the Pod of an attempt, ``verifier`` the Jobs that grade and check, and
``objects`` the Secrets and ConfigMaps beside them. Nothing here reads a clock or a file: the same
arguments give the same object, so a repeated create meets its own.
"""
