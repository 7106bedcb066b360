-- A guard, 1 from the start: not reversed is what differs in its quantity (46712 and
-- 46762), or is another supplier's (46716 and 46781).
SELECT CASE WHEN
  NOT EXISTS (SELECT 1 FROM wh_movements WHERE id > 50000
    AND (reverses IS NULL OR reverses NOT IN (46704, 46741, 46720, 46753, 46734, 46796)))
  AND (SELECT COUNT(*) FROM wh_orders) = 31
THEN 1.0 ELSE 0.0 END;
