-- _session holds the agent's last message, for tasks that ask a question.
SELECT CASE WHEN trim(final_answer) = '3' THEN 1.0 ELSE 0.0 END FROM _session;
