-- A guard, 1 from the start: a question is answered without touching anything.
SELECT CASE WHEN
  NOT EXISTS (SELECT 1 FROM cal_events WHERE updated_at >= '2026-03-23T08:00:00Z')
  AND NOT EXISTS (SELECT 1 FROM cal_invitations WHERE updated_at >= '2026-03-23T08:00:00Z')
THEN 1.0 ELSE 0.0 END;
