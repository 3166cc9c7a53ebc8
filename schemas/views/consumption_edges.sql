-- Clients and the topics that they consume: one row per client, group and topic, while a member of the client owns a partition of
-- the topic. A partition that moves within one client in one record does not end the row.
SELECT c.client_id, c.client_host, c.group_id, c.topic, c.topic_id,
       CASE WHEN min(c.since) > to_timestamp_micros(0) THEN min(c.since) END AS since,
       CASE WHEN max(c.until) < to_timestamp_micros(253402300799000000) THEN max(c.until) END AS until
FROM (
  SELECT s.*, sum(CASE WHEN s.since > s.owned_until THEN 1 ELSE 0 END) OVER until_then AS stretch
  FROM (
    SELECT o.*, max(o.until) OVER before AS owned_until
    FROM (
      SELECT client_id, client_host, group_id, topic, topic_id, COALESCE(topic_id, topic) AS topic_key,
             COALESCE(since, to_timestamp_micros(0)) AS since, COALESCE(until, to_timestamp_micros(253402300799000000)) AS until
      FROM ownership
    ) o
    WINDOW before AS (PARTITION BY o.client_id, o.client_host, o.group_id, o.topic_key ORDER BY o.since, o.until
                      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
  ) s
  WINDOW until_then AS (PARTITION BY s.client_id, s.client_host, s.group_id, s.topic_key ORDER BY s.since, s.until
                        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
) c
GROUP BY c.client_id, c.client_host, c.group_id, c.topic, c.topic_id, c.stretch
