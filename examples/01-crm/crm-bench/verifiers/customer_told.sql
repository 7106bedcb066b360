-- 1 when exactly one new public comment, on T-11, names both merged tickets.
SELECT CASE WHEN COUNT(*) = 1 AND MIN(
  ticket_id = 'T-11' AND instr(body, 'T-26') > 0 AND instr(body, 'T-38') > 0
) THEN 1.0 ELSE 0.0 END
FROM crm_comments
WHERE visibility = 'public' AND created_at >= '2026-03-02T09:00:00Z';
