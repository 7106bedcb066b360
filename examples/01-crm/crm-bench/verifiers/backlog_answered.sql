-- Grades what the agent said: 1 for account and number, 0.5 for the right account with another
-- number. Polestar has 5 open tickets; with the pending ones Orchard Street Bakery would have as many.
WITH answer(line) AS (
  SELECT lower(trim(coalesce(final_answer, ''), ' .`' || char(9, 10, 13))) FROM _session
)
SELECT CASE
  WHEN line = 'polestar robotics: 5' THEN 1.0
  WHEN line GLOB 'polestar robotics: [0-9]' OR line GLOB 'polestar robotics: [0-9][0-9]' THEN 0.5
  ELSE 0.0
END
FROM answer;
