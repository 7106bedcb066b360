-- A guard, 1 from the start: room is made for nobody, and there is one new meeting at most.
SELECT CASE WHEN
  (SELECT COUNT(*) FROM cal_events WHERE updated_at >= '2026-03-23T08:00:00Z') <= 1
  AND NOT EXISTS (
    SELECT 1 FROM cal_events WHERE updated_at >= '2026-03-23T08:00:00Z' AND title <> 'Budget review'
  )
  AND NOT EXISTS (
    SELECT 1 FROM cal_invitations JOIN cal_events ON cal_events.id = event_id
    WHERE cal_invitations.updated_at >= '2026-03-23T08:00:00Z' AND title <> 'Budget review'
  )
THEN 1.0 ELSE 0.0 END;
