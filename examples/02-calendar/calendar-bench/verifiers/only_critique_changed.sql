-- A guard, 1 from the start: nobody has to leave and no other meeting has to give way.
SELECT CASE WHEN
  NOT EXISTS (SELECT 1 FROM cal_events WHERE updated_at >= '2026-03-23T08:00:00Z' AND id <> 'E-20')
  AND NOT EXISTS (SELECT 1 FROM cal_invitations WHERE updated_at >= '2026-03-23T08:00:00Z')
THEN 1.0 ELSE 0.0 END;
