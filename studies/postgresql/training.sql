-- What PGO learns from: queries that no test sends, on the same tables.
\set first random(1, 100000 * :scale - 1000)
SELECT bid, count(*), sum(abalance), avg(aid) FROM pgbench_accounts WHERE aid BETWEEN :first AND :first + 999 GROUP BY bid ORDER BY bid;
BEGIN;
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) SELECT tid, bid, :first, tbalance, now() FROM pgbench_tellers ORDER BY random() LIMIT 5;
UPDATE pgbench_tellers SET tbalance = tbalance + 1 WHERE tid = 1 + (:first % 10);
DELETE FROM pgbench_history WHERE ctid IN (SELECT ctid FROM pgbench_history ORDER BY mtime LIMIT 4);
COMMIT;
SELECT a.aid, b.bbalance FROM pgbench_accounts a JOIN pgbench_branches b USING (bid) WHERE a.aid IN (:first, :first + 7, :first + 500) ORDER BY a.abalance DESC, a.aid;
