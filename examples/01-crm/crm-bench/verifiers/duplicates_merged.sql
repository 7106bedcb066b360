-- T-11 is the oldest of the three: half a point for each of the others merged into it.
SELECT COUNT(*) / 2.0
FROM crm_tickets
WHERE id IN ('T-26', 'T-38') AND merged_into = 'T-11' AND status = 'closed';
