-- A guard, 1 from the start: movements are only ever added, and the seed ends with number 50,000.
SELECT CASE WHEN
  NOT EXISTS (SELECT 1 FROM wh_movements WHERE id > 50000 AND NOT (item = 217 AND bin = 31))
  AND (SELECT COUNT(*) FROM wh_orders) = 31
THEN 1.0 ELSE 0.0 END;
