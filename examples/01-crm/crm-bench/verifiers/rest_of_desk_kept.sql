-- A guard, 1 from the start: the kept ticket stays open, and beside the three nothing changes, like
-- Halden's other invoice (T-29) or another customer's double charge (T-15).
SELECT CASE WHEN
  (SELECT COUNT(*) FROM crm_tickets WHERE id = 'T-11' AND status = 'open' AND merged_into IS NULL) = 1
  AND NOT EXISTS (
    SELECT 1 FROM crm_tickets
    WHERE id NOT IN ('T-11', 'T-26', 'T-38') AND updated_at >= '2026-03-02T09:00:00Z'
  )
  AND NOT EXISTS (
    SELECT 1 FROM crm_accounts
    WHERE status <> CASE id WHEN 'A-04' THEN 'locked' WHEN 'A-11' THEN 'suspended' ELSE 'active' END
  )
THEN 1.0 ELSE 0.0 END;
