"""The warehouse's tools. They add movements and orders, and change none."""

from typing import Annotated, Literal

from pydantic import Field

from wavetank.worlds import ToolError, World, tool

Quantity = Annotated[int, Field(ge=1, le=10_000)]
Limit = Annotated[int, Field(ge=1, le=200)]


@tool
def find_items(world: World, text: str = "", supplier: str | None = None) -> list[dict]:
    """Find items with what is on hand of each in all bins.

    Args:
        text: Part of the name; capital letters do not matter.
        supplier: Only items of this supplier, like Nordholm.
    """
    return world.sql(
        """SELECT i.*, coalesce(SUM(qty), 0) AS on_hand
        FROM wh_items i LEFT JOIN wh_movements m ON m.item = i.id
        WHERE instr(lower(name), lower(?)) AND (? IS NULL OR supplier = ?)
        GROUP BY i.id ORDER BY i.id""",
        (text, supplier, supplier),
    )


@tool
def list_bins(world: World, aisle: str | None = None) -> list[dict]:
    """List the bins with how many items of any kind are in each.

    Args:
        aisle: Only bins of this aisle, like F.
    """
    return world.sql(
        """SELECT b.id, aisle, coalesce(SUM(qty), 0) AS on_hand
        FROM wh_bins b LEFT JOIN wh_movements m ON m.bin = b.id
        WHERE ? IS NULL OR aisle = ?
        GROUP BY b.id ORDER BY b.id""",
        (aisle, aisle),
    )


@tool
def show_stock(world: World, item: int | None = None, bin: int | None = None) -> list[dict]:
    """Show what is on hand by item and bin. Give at least one of the two.

    Args:
        item: Only this item, like 217.
        bin: Only this bin, like 31.
    """
    if item is None and bin is None:
        raise ToolError("give item, bin, or both")
    return world.sql(
        """SELECT item, bin, SUM(qty) AS on_hand FROM wh_movements
        WHERE (? IS NULL OR item = ?) AND (? IS NULL OR bin = ?)
        GROUP BY item, bin HAVING SUM(qty) <> 0 ORDER BY item, bin""",
        (item, item, bin, bin),
    )


@tool
def list_movements(
    world: World,
    after: str,
    before: str,
    item: int | None = None,
    bin: int | None = None,
    limit: Limit = 100,
) -> dict:
    """List movements, the oldest first.

    Args:
        after: The first day, like 2026-02-01.
        before: The last day.
        item: Only of this item.
        bin: Only in this bin.
        limit: How many to show at most.
    """
    condition = "day BETWEEN ? AND ? AND (? IS NULL OR item = ?) AND (? IS NULL OR bin = ?)"
    given = (after, before, item, item, bin, bin)
    total = world.sql(f"SELECT COUNT(*) AS n FROM wh_movements WHERE {condition}", given)  # noqa: S608
    found = world.sql(
        f"SELECT * FROM wh_movements WHERE {condition} ORDER BY id LIMIT ?",  # noqa: S608
        (*given, limit),
    )
    return {"total": total[0]["n"], "movements": found}


@tool
def list_receipts(world: World, day: str, supplier: str) -> list[dict]:
    """List what came in from a supplier on a day.

    Args:
        day: Like 2026-02-01.
        supplier: Like Nordholm.
    """
    return world.sql(
        """SELECT m.* FROM wh_movements m JOIN wh_items i ON i.id = m.item
        WHERE day = ? AND supplier = ? AND qty > 0 AND reason IS NULL ORDER BY m.id""",
        (day, supplier),
    )


@tool
def book(
    world: World, item: int, bin: int, qty: int, reason: Literal["count"] | None = None
) -> dict:
    """Book what came in or went out of a bin.

    Args:
        item: Like 217.
        bin: Like 31.
        qty: How many; below 0 for what went out.
        reason: 'count' for the difference that a count has found; none for what was received or picked.
    """
    if qty == 0:
        raise ToolError("nothing moves: qty is 0")
    _known(world, "wh_items", item)
    _known(world, "wh_bins", bin)
    on_hand = _on_hand(world, item, bin)
    if on_hand + qty < 0:
        raise ToolError(f"bin {bin} holds only {on_hand} of item {item}")
    return _move(world, item=item, bin=bin, qty=qty, reason=reason)


@tool
def move_stock(world: World, item: int, from_bin: int, to_bin: int, qty: Quantity) -> list[dict]:
    """Move some of an item from one bin to another.

    Args:
        item: Like 217.
        from_bin: Where it is.
        to_bin: Where it goes.
        qty: How many.
    """
    _known(world, "wh_bins", to_bin)
    on_hand = _on_hand(world, item, from_bin)
    if from_bin == to_bin or qty > on_hand:
        raise ToolError(
            f"bin {from_bin} holds {on_hand} of item {item}; {qty} cannot go to {to_bin}"
        )
    return [
        _move(world, item=item, bin=from_bin, qty=-qty, reason="move"),
        _move(world, item=item, bin=to_bin, qty=qty, reason="move"),
    ]


@tool
def reverse(world: World, movement: int) -> dict:
    """Reverse a movement that should not have been booked, by one of the opposite quantity.

    Args:
        movement: Its id, like 4711.
    """
    wrong = _known(world, "wh_movements", movement)
    if wrong["reverses"] is not None or world.find_one("wh_movements", reverses=movement):
        raise ToolError(f"{movement} is a reversal, or reversed already")
    return _move(
        world,
        item=wrong["item"],
        bin=wrong["bin"],
        qty=-wrong["qty"],
        reason="reversal",
        reverses=movement,
    )


@tool
def list_orders(world: World, status: Literal["open", "received"] | None = None) -> list[dict]:
    """List orders to suppliers. What is open has not come yet.

    Args:
        status: Only orders of this status.
    """
    return world.find("wh_orders", **({} if status is None else {"status": status}))


@tool
def place_order(world: World, item: int, packs: Quantity) -> dict:
    """Order packs of an item from its supplier.

    Args:
        item: Like 217.
        packs: How many packs.
    """
    _known(world, "wh_items", item)
    number = world.sql("SELECT count(*) + 1 AS number FROM wh_orders")[0]["number"]
    row = {"id": f"PO-{number}", "item": item, "packs": packs, "status": "open"}
    return world.insert("wh_orders", row)


def _known(world: World, entity: str, id: int) -> dict:
    found = world.find_one(entity, id=id)
    if found is None:
        raise ToolError(f"there is no {id} in {entity}")
    return found


def _on_hand(world: World, item: int, bin: int) -> int:
    statement = "SELECT coalesce(SUM(qty), 0) AS n FROM wh_movements WHERE item = ? AND bin = ?"
    return world.sql(statement, (item, bin))[0]["n"]


def _move(world: World, **values: object) -> dict:
    number = world.sql("SELECT max(id) + 1 AS number FROM wh_movements")[0]["number"]
    row = {"id": number, "day": world.now().date().isoformat(), **values}
    return world.insert("wh_movements", row)
