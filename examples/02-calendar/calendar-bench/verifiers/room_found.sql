-- 1 when the critique, with its 7 people, is in Dahme (8 seats) at its old time. Havel seats 6, and
-- Alster is taken.
SELECT CASE WHEN COUNT(*) = 1 THEN 1.0 ELSE 0.0 END
FROM cal_events
WHERE id = 'E-20' AND room = 'R-6' AND status = 'confirmed'
  AND starts_at = '2026-03-26T13:00:00Z' AND ends_at = '2026-03-26T14:00:00Z';
