-- A guard, 1 from the start: a question is answered without booking or ordering anything.
SELECT CASE WHEN
  NOT EXISTS (SELECT 1 FROM wh_movements WHERE id > 50000)
  AND (SELECT COUNT(*) FROM wh_orders) = 31
THEN 1.0 ELSE 0.0 END;
