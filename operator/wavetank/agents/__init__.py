"""What runs in a rollout's agent container: the wrapper around any agent, and those without a model."""
