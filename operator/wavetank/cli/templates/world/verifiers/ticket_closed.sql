-- One statement that answers one number in 0..1. T-7 is closed, and no other open ticket was.
SELECT CASE WHEN
    (SELECT status FROM crm_tickets WHERE id = 'T-7') = 'closed'
    AND (SELECT COUNT(*) FROM crm_tickets WHERE id <> 'T-7' AND status <> 'closed') = 6
THEN 1.0 ELSE 0.0 END;
