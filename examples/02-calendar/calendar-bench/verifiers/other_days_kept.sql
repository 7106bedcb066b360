-- A guard, 1 from the start: only Hana's own answers for that day may move. What ends at her
-- midnight (E-15), begins after the next one (E-23) or is cancelled (E-18) is not of that day.
SELECT CASE WHEN
  NOT EXISTS (SELECT 1 FROM cal_events WHERE updated_at >= '2026-03-23T08:00:00Z')
  AND NOT EXISTS (SELECT 1 FROM cal_invitations WHERE updated_at >= '2026-03-23T08:00:00Z'
    AND NOT (person_id = 'P-5' AND event_id IN ('E-16', 'E-17', 'E-19')))
THEN 1.0 ELSE 0.0 END;
