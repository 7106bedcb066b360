-- A guard, 1 from the start: where the count agrees, nothing is booked.
SELECT CASE WHEN
  NOT EXISTS (SELECT 1 FROM wh_movements WHERE id > 50000
    AND NOT ((item = 150 AND bin = 62) OR (item = 136 AND bin = 62) OR (item = 161 AND bin = 63)))
  AND (SELECT COUNT(*) FROM wh_orders) = 31
THEN 1.0 ELSE 0.0 END;
