-- 1 when T-21 is urgent, open and Priya Raman's, all accounts are as they were (A-04 still locked), and nothing else changed.
SELECT CASE WHEN
  EXISTS (
    SELECT 1 FROM crm_tickets
    WHERE id = 'T-21' AND priority = 'urgent' AND status = 'open' AND assignee = 'U-3'
  )
  AND NOT EXISTS (
    SELECT 1 FROM crm_accounts
    WHERE status <> CASE id WHEN 'A-04' THEN 'locked' WHEN 'A-11' THEN 'suspended' ELSE 'active' END
  )
  AND NOT EXISTS (
    SELECT 1 FROM crm_tickets WHERE id <> 'T-21' AND updated_at >= '2026-03-02T09:00:00Z'
  )
THEN 1.0 ELSE 0.0 END;
