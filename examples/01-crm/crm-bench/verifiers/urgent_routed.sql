-- Half a point for each of the two tickets, nothing once any other ticket was changed: T-18 is about
-- signing in (Priya Raman, U-3), T-33 is a bug (Marcus Bell, U-5). T-37 is pending and T-40 closed.
SELECT CASE
  WHEN EXISTS (
    SELECT 1 FROM crm_tickets
    WHERE id NOT IN ('T-18', 'T-33') AND updated_at >= '2026-03-02T09:00:00Z'
  ) THEN 0.0
  ELSE (
    SELECT COUNT(*) / 2.0 FROM crm_tickets
    WHERE priority = 'urgent' AND status = 'open'
      AND ((id = 'T-18' AND assignee = 'U-3') OR (id = 'T-33' AND assignee = 'U-5'))
  )
END;
