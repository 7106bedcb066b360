-- A guard, 1 from the start: what is about security belongs to #security only.
SELECT CASE WHEN COUNT(*) = 0 THEN 1.0 ELSE 0.0 END
FROM slack_messages
WHERE channel_id <> 'CH-3' AND posted_at >= '2026-03-02T09:00:00Z';
