-- Grades what the agent said. His day lasts from 18:30 to 18:30 in UTC: 30 + 60 + 50 minutes. By the
-- days of UTC it would be 135.
SELECT CASE WHEN trim(coalesce(final_answer, ''), ' .`' || char(9, 10, 13)) = '140'
  THEN 1.0 ELSE 0.0 END
FROM _session;
