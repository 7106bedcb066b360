-- Grades what the agent said against the sum of the movements.
SELECT CASE WHEN trim(coalesce(final_answer, ''), ' .`' || char(9, 10, 13)) =
  (SELECT printf('%d', SUM(qty)) FROM wh_movements WHERE item = 342 AND id <= 50000)
THEN 1.0 ELSE 0.0 END
FROM _session;
