"""What crosses a border as data: the three kinds, and the documents that Wavetank's parts exchange."""
