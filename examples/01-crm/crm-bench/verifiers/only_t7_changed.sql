-- A guard, 1 from the start: every tool that changes a ticket moves its updated_at, and the
-- session's clock starts at 09:00 of 2 March.
SELECT CASE WHEN
  (SELECT COUNT(*) FROM crm_tickets WHERE id <> 'T-7' AND updated_at >= '2026-03-02T09:00:00Z') = 0
  AND NOT EXISTS (
    SELECT 1 FROM crm_accounts
    WHERE status <> CASE id WHEN 'A-04' THEN 'locked' WHEN 'A-11' THEN 'suspended' ELSE 'active' END
  )
THEN 1.0 ELSE 0.0 END;
