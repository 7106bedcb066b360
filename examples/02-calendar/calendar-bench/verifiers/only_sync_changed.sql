-- A guard, 1 from the start: every tool that changes something moves its updated_at, and the
-- session's clock starts at 08:00 of 23 March. The call and the contracts (E-4, E-7) stay.
SELECT CASE WHEN
  NOT EXISTS (SELECT 1 FROM cal_events WHERE updated_at >= '2026-03-23T08:00:00Z' AND id <> 'E-6')
  AND NOT EXISTS (SELECT 1 FROM cal_invitations WHERE updated_at >= '2026-03-23T08:00:00Z')
THEN 1.0 ELSE 0.0 END;
