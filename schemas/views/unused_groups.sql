-- Groups without a member, and groups whose topics are all deleted: no group has a partition of them that the cluster knows, since
-- Kafka has one error for a topic and a partition that do not exist. Idle time is that at the end of the batch that is read;
-- expires_at is the time at which the last offset expires, null if one of them does not.
SELECT u.group_id, u.group_type, u.state, u.member_count, u.offsets, u.topics, u.missing_topics, u.last_activity_at,
       CASE
         WHEN u.last_activity_at > {batch.finished_at} THEN 0.0
         ELSE round((date_part('epoch', {batch.finished_at}) - date_part('epoch', u.last_activity_at)) / 86400, 1)
       END AS idle_days,
       u.expires_at
FROM (
  SELECT g.group_id, g.group_type, g.state, g.member_count, COALESCE(o.offsets, 0) AS offsets, COALESCE(o.topics, 0) AS topics,
         COALESCE(o.missing_topics, 0) AS missing_topics,
         greatest(o.last_commit_at, CASE WHEN g.group_type <> 'simple' THEN g.record_timestamp END) AS last_activity_at,
         CASE WHEN o.expiring = o.offsets THEN o.last_expiry_at END AS expires_at
  FROM groups g
  LEFT JOIN (
    SELECT e.group_id, count(*) AS offsets, count(e.expires_at) AS expiring, count(DISTINCT e.topic) AS topics,
           count(DISTINCT m.topic) AS missing_topics, max(e.commit_timestamp) AS last_commit_at,
           max(e.expires_at) AS last_expiry_at
    FROM expiring_offsets e
    LEFT JOIN (
      SELECT topic FROM lag GROUP BY topic
      HAVING count(*) = sum(CASE WHEN lag_reason = 'unknown_topic_or_partition' THEN 1 ELSE 0 END)
    ) m ON m.topic = e.topic
    GROUP BY e.group_id
  ) o ON o.group_id = g.group_id
) u
WHERE u.member_count = 0 OR (u.topics > 0 AND u.missing_topics = u.topics)
