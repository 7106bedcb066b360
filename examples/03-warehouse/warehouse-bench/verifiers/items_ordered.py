"""The part of the right orders among all that were to be placed or were."""

NEEDED = """
SELECT i.id, reorder_at, pack,
  coalesce((SELECT SUM(qty) FROM wh_movements WHERE item = i.id AND wh_movements.id <= 50000), 0)
  + coalesce((SELECT SUM(packs) FROM wh_orders o
              WHERE o.item = i.id AND status = 'open'
                AND CAST(substr(o.id, 4) AS INTEGER) <= 31), 0) * pack AS there
FROM wh_items i WHERE supplier = 'Nordholm'
"""
PLACED = """
SELECT item, SUM(packs) AS packs FROM wh_orders
WHERE CAST(substr(id, 4) AS INTEGER) > 31 GROUP BY item
"""


def verify(world, trajectory):
    needed = {
        row["id"]: (row["reorder_at"] - row["there"]) // row["pack"] + 1
        for row in world.sql(NEEDED)
        if row["there"] <= row["reorder_at"]
    }
    placed = {row["item"]: row["packs"] for row in world.sql(PLACED)}
    right = [item for item, packs in needed.items() if placed.get(item) == packs]
    return len(right) / len(needed.keys() | placed.keys())
