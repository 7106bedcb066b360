SELECT CASE WHEN COUNT(*) = 1 THEN 1.0 ELSE 0.0 END
FROM crm_tickets WHERE id = 'T-7' AND close_reason = 'duplicate';
