-- A guard, 1 from the start: the review of 16 April (E-45) is right already, and so are all before
-- the change and those of others.
SELECT CASE WHEN
  NOT EXISTS (SELECT 1 FROM cal_events WHERE updated_at >= '2026-03-23T08:00:00Z'
    AND id NOT IN ('E-40', 'E-44', 'E-46'))
  AND NOT EXISTS (SELECT 1 FROM cal_invitations WHERE updated_at >= '2026-03-23T08:00:00Z')
THEN 1.0 ELSE 0.0 END;
