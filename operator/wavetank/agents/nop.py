"""``python -m wavetank.agents.nop``: the agent that does nothing, and so measures the start."""

if __name__ == "__main__":
    raise SystemExit(0)
