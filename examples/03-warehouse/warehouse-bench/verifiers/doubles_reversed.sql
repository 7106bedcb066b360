-- A third for each of the doubles of which one entry, whichever, was reversed. They are found as the
-- task tells: the same item, bin and quantity on that day.
WITH receipts AS (
  SELECT m.* FROM wh_movements m JOIN wh_items i ON i.id = m.item
  WHERE supplier = 'Nordholm' AND day = '2026-02-12' AND qty > 0 AND m.id <= 50000
), doubles AS (
  SELECT item, bin, qty FROM receipts GROUP BY item, bin, qty HAVING COUNT(*) = 2
)
SELECT AVG((
  SELECT COUNT(*) FROM wh_movements back JOIN receipts r ON r.id = back.reverses
  WHERE (r.item, r.bin, r.qty) = (doubles.item, doubles.bin, doubles.qty)
) = 1)
FROM doubles;
