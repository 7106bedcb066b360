-- 1 when the bin has got exactly these 48, in one receipt.
SELECT CASE WHEN COUNT(*) = 1 AND SUM(qty) = 48 THEN 1.0 ELSE 0.0 END
FROM wh_movements
WHERE id > 50000 AND item = 217 AND bin = 31 AND reason IS NULL;
