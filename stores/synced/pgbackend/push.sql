-- Adds differences to counters, once, and returns the totals in order.
-- $1 namespace  $2 node  $3 sequence, 0: always  $4 now
-- $5 keys  $6 window lengths  $7 starts  $8 differences  $9 expiries
WITH fresh AS (
	INSERT INTO floodgate_nodes AS n (namespace, node, sequence, seen)
	SELECT $1, $2, $3::bigint, $4::bigint WHERE $3::bigint > 0
	ON CONFLICT (namespace, node) DO UPDATE SET sequence = excluded.sequence, seen = excluded.seen
	WHERE n.sequence < excluded.sequence
	RETURNING 1
), diffs AS (
	SELECT * FROM unnest($5::text[], $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[])
	WITH ORDINALITY AS d (key, size, start, diff, expires, place)
), applied AS (
	-- In the same order in every node, so that no two wait for each other. A negative
	-- count means 0.
	INSERT INTO floodgate_counters AS c (namespace, key, size, start, count, expires)
	SELECT $1, key, size, start, diff, expires FROM diffs
	WHERE diff <> 0 AND ($3::bigint = 0 OR EXISTS (SELECT FROM fresh))
	ORDER BY size, start, key
	ON CONFLICT (namespace, size, start, key) DO UPDATE SET count = greatest(0, greatest(0, c.count) + excluded.count)
	RETURNING key, size, start, count
)
SELECT greatest(0, coalesce(a.count, c.count))
FROM diffs d
LEFT JOIN applied a USING (key, size, start)
LEFT JOIN floodgate_counters c ON c.namespace = $1 AND c.size = d.size AND c.start = d.start AND c.key = d.key
ORDER BY d.place
