"""A quarter for each of the four items that went from bin 88 to bin 89 as a whole."""

STOCK = "SELECT item, SUM(qty) AS n FROM wh_movements WHERE bin = ? AND id <= ? GROUP BY item"
SEED, EVER = 50_000, 10**9


def verify(world, trajectory):
    before, was_there = stock(world, 88, SEED), stock(world, 89, SEED)
    left, there = stock(world, 88, EVER), stock(world, 89, EVER)
    moved = [
        item
        for item, count in before.items()
        if left.get(item, 0) == 0 and there.get(item, 0) == was_there.get(item, 0) + count
    ]
    return len(moved) / len(before)


def stock(world, bin, last):
    return {row["item"]: row["n"] for row in world.sql(STOCK, (bin, last)) if row["n"]}
