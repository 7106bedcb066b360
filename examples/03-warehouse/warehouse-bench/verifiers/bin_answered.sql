-- Grades what the agent said against the movements of that month: bin 33 with 87 picks. Bin 31 is
-- the next, with 84.
SELECT CASE WHEN trim(coalesce(final_answer, ''), ' .`' || char(9, 10, 13)) = (
  SELECT printf('%d', bin)
  FROM wh_movements JOIN wh_bins ON wh_bins.id = bin
  WHERE aisle = 'C' AND day BETWEEN '2025-12-01' AND '2025-12-31' AND qty < 0
    AND wh_movements.id <= 50000
  GROUP BY bin ORDER BY COUNT(*) DESC LIMIT 1
) THEN 1.0 ELSE 0.0 END
FROM _session;
