-- 1 when exactly one message was posted to #security and it names the account and the ticket.
SELECT CASE WHEN COUNT(*) = 1 AND MIN(instr(text, 'A-04') > 0 AND instr(text, 'T-21') > 0)
  THEN 1.0 ELSE 0.0 END
FROM slack_messages
WHERE channel_id = 'CH-3' AND posted_at >= '2026-03-02T09:00:00Z';
