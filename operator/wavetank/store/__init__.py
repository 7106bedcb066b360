"""Evidence and bundles, kept by digest and by rollout: the server, its tokens, its client."""
