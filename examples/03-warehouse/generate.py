"""Write the warehouse's seed rows: python examples/03-warehouse/generate.py

The same seed writes the same bytes. What the tasks are about is planted: receipts that were entered
twice on 12 February, and items of one supplier that are to be ordered anew.
"""

import json
import random
from collections import Counter
from datetime import date, timedelta
from pathlib import Path

SEED = 20260302
MOVEMENTS = 50_000
ITEMS = range(100, 500)
BINS = range(1, 97)
FIRST_DAY = date(2025, 7, 1)
DAYS = 242  # the last is 27 February 2026
SUPPLIERS = (
    *("Aldergate", "Brandt & Sohn", "Corvane", "Delmar", "Estrela", "Nordholm", "Fenwick", "Galdi"),
    *("Haverkamp", "Iversen", "Jarnvik", "Kestrel", "Lumina", "Marlow", "Ostrava Metal", "Pelham"),
)
KINDS = ("hinge", "bracket", "bolt set", "clamp", "pulley", "valve", "hook", "bearing", "caster")
MAKES = ("steel", "brass", "nylon", "zinc", "oak", "alloy", "rubber", "galvanized")
SIZES = ("20 mm", "35 mm", "50 mm", "80 mm", "120 mm", "200 mm")
ORDERED = {2: 1, 6: 1, 9: 1, 13: 2, 17: 1}
"""Items of Nordholm that fall short, by their place among its items, and the packs they need."""
COVERED = 20
"""The place of one that falls short too, but for an order that is open."""


def made() -> dict[str, list[dict]]:
    """Return all rows by entity."""
    chance = random.Random(SEED)  # noqa: S311 -- made-up stock needs no secret
    items = [item(number, chance) for number in ITEMS]
    homes = {number: chance.sample(BINS, chance.randint(1, 3)) for number in ITEMS}
    nordholm = [each["id"] for each in items if each["supplier"] == "Nordholm"]
    movements, stock = moved(chance, items, homes, planted(homes, nordholm))
    for each in items:
        each["reorder_at"] = chance.randint(5, 40)
    orders = [
        {"id": f"PO-{n}", "item": number, "packs": chance.randint(1, 4), "status": status}
        for n, number in enumerate(chance.sample([n for n in ITEMS if n not in nordholm], 30), 1)
        for status in ["open" if n % 3 == 0 else "received"]
    ]
    by_id = {each["id"]: each for each in items}
    for place, number in enumerate(nordholm):
        on_hand, pack = stock[number], by_id[number]["pack"]
        if place in ORDERED:
            # So many packs bring it above the point, and one less would not. Equal is too low.
            short = (ORDERED[place] - 1) * pack
            by_id[number]["reorder_at"] = on_hand + short + (0 if place == 6 else pack // 2)
        elif place == COVERED:
            by_id[number]["reorder_at"] = on_hand + pack // 2
            orders.append({"id": "PO-31", "item": number, "packs": 1, "status": "open"})
        else:
            by_id[number]["reorder_at"] = max(0, on_hand - 1 - place)
    bins = [{"id": number, "aisle": "ABCDEFGH"[(number - 1) // 12]} for number in BINS]
    return {"wh_items": items, "wh_bins": bins, "wh_movements": movements, "wh_orders": orders}


def item(number: int, chance: random.Random) -> dict:
    name = f"{chance.choice(MAKES)} {chance.choice(KINDS)} {chance.choice(SIZES)}"
    supplier = SUPPLIERS[number % len(SUPPLIERS)]
    return {"id": number, "name": name, "supplier": supplier, "pack": chance.choice((6, 12, 24))}


def planted(homes: dict, nordholm: list[int]) -> dict[int, tuple[int, int, int]]:
    """Receipts of 12 February by their place among the movements: item, bin, quantity."""
    a, b, c = nordholm[0], nordholm[3], nordholm[8]
    d = nordholm[11]
    other = next(number for number in ITEMS if number not in nordholm)
    receipts = {
        **{703: (a, 48), 740: (a, 48), 719: (b, 60), 752: (b, 60), 733: (c, 72), 795: (c, 72)},
        # Of one item twice, but not as many; and twice the same of another supplier.
        **{711: (d, 36), 761: (d, 30), 715: (other, 48), 780: (other, 48)},
    }
    return {
        46_000 + place: (number, homes[number][0], quantity)
        for place, (number, quantity) in receipts.items()
    }


def moved(
    chance: random.Random, items: list[dict], homes: dict, plan: dict
) -> tuple[list[dict], Counter]:
    """Return the movements, no bin ever below 0, and what is on hand of each item."""
    packs = {each["id"]: each["pack"] for each in items}
    pairs = [(number, place) for number in ITEMS for place in homes[number]]
    there: Counter = Counter()
    movements = []
    for place in range(MOVEMENTS):
        day = FIRST_DAY + timedelta(days=place * DAYS // MOVEMENTS)
        number, where = chance.choice(pairs)
        if place in plan:
            number, where, quantity = plan[place]
        elif there[number, where] < 10:
            quantity = packs[number] * chance.randint(2, 6)
        else:
            quantity = -chance.randint(1, 9)
        there[number, where] += quantity
        row = {"id": place + 1, "day": f"{day}", "item": number, "bin": where, "qty": quantity}
        movements.append(row)
    stock: Counter = Counter()
    for (number, _), quantity in there.items():
        stock[number] += quantity
    return movements, stock


def text() -> str:
    """Return the file: one row a line, and no more white space."""
    entities = (
        f'"{name}":[\n' + ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows) + "\n]"
        for name, rows in made().items()
    )
    return "{" + ",\n".join(entities) + "}\n"


if __name__ == "__main__":
    target = Path(__file__).parent / "warehouse-bench" / "data" / "initial.json"
    target.write_text(text())
    print(f"{target.name}: {target.stat().st_size} bytes")
