-- Rebalances: one row per new generation or group epoch. Records that lead to a new epoch of a modern group, such as that of a
-- new member, precede it (`leading`); those that assign partitions follow it (`following`). A poll (log partition -1)
-- does not know when a rebalance began, nor that the first generation that it sees is a new one. Nor does it know generations of
-- classic groups (-1): there, other members or owners than at the last poll take at least one rebalance.
SELECT r.group_id, r.group_type, r.from_generation, r.to_generation,
       CASE
         WHEN r.members_before IS NULL THEN 'unknown'
         WHEN r.joined > 0 AND r.departed > 0 THEN 'members_changed'
         WHEN r.joined > 0 THEN 'member_joined'
         WHEN r.departed > 0 THEN 'member_left'
         WHEN r.replaced > 0 THEN 'member_replaced'
         WHEN r.subscriptions > 0 THEN 'subscription_changed'
         WHEN r.topics > 0 THEN 'topics_changed'
         WHEN r.protocol = 'cooperative-sticky' AND r.partitions_gained > 0 AND r.partitions_lost = 0 THEN 'revoked_partitions'
         WHEN r.group_type = 'classic' AND r.partitions_gained <> r.partitions_lost THEN 'topics_changed'
         ELSE 'unknown'
       END AS trigger,
       CASE
         WHEN r.finished_at IS NOT NULL THEN 'completed'
         WHEN r.next_state IS NULL THEN 'in_progress'
         WHEN r.next_state = 'Dead' THEN 'deleted'
         ELSE 'superseded'
       END AS outcome,
       r.protocol, r.recorded_at, r.started_at, r.finished_at,
       round(date_part('epoch', r.finished_at) - date_part('epoch', r.started_at), 3) AS duration_seconds,
       r.members_before, r.members_after,
       CASE WHEN r.members_before IS NOT NULL THEN r.joined END AS members_joined,
       CASE WHEN r.members_before IS NOT NULL THEN r.departed END AS members_left,
       r.partitions_moved,
       CASE
         WHEN r.group_type = 'share' OR r.log_partition < 0 THEN NULL
         WHEN r.partitions_moved = 0 THEN 0.0
         ELSE round(r.seconds_without_owner, 3)
       END AS seconds_without_owner,
       r.log_partition, r.log_offset
FROM (
  SELECT b.group_id, b.group_type, NULLIF(b.previous_generation, -1) AS from_generation,
         NULLIF(b.generation, -1) AS to_generation, b.protocol, b.record_timestamp AS recorded_at,
         CASE
           WHEN b.group_type = 'classic' THEN b.state_timestamp
           WHEN b.log_partition >= 0 THEN b.record_timestamp
         END AS started_at,
         b.finished_at,
         CASE WHEN b.previous_generation IS NOT NULL OR b.generation <= 1 THEN b.member_count - b.joined + b.departed
         END AS members_before,
         b.member_count AS members_after, b.joined, b.departed, b.replaced, b.subscriptions, b.topics, b.partitions_gained,
         b.partitions_lost, b.partitions_moved, b.seconds_without_owner, b.is_new, b.log_partition, b.log_offset,
         lead(b.state) OVER (PARTITION BY b.group_id ORDER BY b.batch_id, b.log_offset) AS next_state
  FROM (
    SELECT c.*,
           sum(c.members_joined) OVER leading AS joined,
           sum(c.members_left) OVER leading AS departed,
           sum(c.members_replaced) OVER leading AS replaced,
           sum(c.subscriptions_changed) OVER leading AS subscriptions,
           sum(CASE WHEN c.topics_changed THEN 1 ELSE 0 END) OVER leading AS topics,
           min(CASE WHEN c.state IN ('Stable', 'Empty') THEN c.record_timestamp END) OVER following AS finished_at,
           sum(c.partitions_gained) OVER following AS partitions_moved,
           max(c.gap_seconds) OVER following AS seconds_without_owner
    FROM (
      SELECT s.*, s.boundaries AS follows,
             -- a poll finds all that leads to a new generation together with it
             CASE WHEN s.log_partition < 0 THEN s.boundaries * s.is_new ELSE s.boundaries - s.is_new - s.is_end + 1 END AS leads_to
      FROM (
        SELECT m.*,
               -- transferred within one record: the group had stopped when the last state began
               greatest(g.gap_seconds, CASE WHEN m.partitions_transferred > 0
                 THEN date_part('epoch', m.record_timestamp) - date_part('epoch', m.state_timestamp) END) AS gap_seconds,
               sum(m.is_new + m.is_end) OVER (PARTITION BY m.group_id ORDER BY m.batch_id, m.log_offset
                                              ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS boundaries
        FROM (
          SELECT h.*, CASE WHEN h.state = 'Dead' THEN 1 ELSE 0 END AS is_end,
                 CASE
                   WHEN h.state = 'Dead' THEN 0
                   WHEN h.previous_generation IS NULL AND (h.member_count = 0 OR h.log_partition < 0) THEN 0
                   WHEN h.generation < 0 OR h.previous_generation < 0
                     THEN CASE WHEN h.members_joined + h.members_left + h.partitions_gained + h.partitions_lost > 0 THEN 1 ELSE 0 END
                   WHEN h.generation = h.previous_generation THEN 0
                   ELSE 1
                 END AS is_new
          FROM membership_history h
        ) m
        LEFT JOIN (
          -- time since each assigned partition was taken from its last owner by an earlier record
          SELECT e.group_id, e.batch_id, e.log_offset,
                 max(date_part('epoch', e.record_timestamp) - date_part('epoch', e.previous_timestamp)) AS gap_seconds
          FROM (
            -- w is in descending order, so that lead() is the event before
            SELECT p.*, lead(p.batch_id) OVER w AS previous_batch, lead(p.log_offset) OVER w AS previous_offset,
                   lead(p.record_timestamp) OVER w AS previous_timestamp, lead(p.is_gained) OVER w AS previous_event
            FROM (
              SELECT o.group_id, COALESCE(o.topic_id, o.topic) AS topic_key, o.batch_id, o.log_offset, o.record_timestamp,
                     1 AS is_gained, unnest(o.gained) AS partition
              FROM ownership_history o
              JOIN membership_history r ON r.group_id = o.group_id AND r.batch_id = o.batch_id AND r.log_offset = o.log_offset
              WHERE r.partitions_transferred < r.partitions_gained
              UNION ALL
              SELECT o.group_id, COALESCE(o.topic_id, o.topic) AS topic_key, o.batch_id, o.log_offset, o.record_timestamp,
                     0 AS is_gained, unnest(o.lost) AS partition
              FROM ownership_history o
              JOIN membership_history r ON r.group_id = o.group_id AND r.batch_id = o.batch_id AND r.log_offset = o.log_offset
              WHERE r.partitions_transferred < r.partitions_lost
            ) p
            WINDOW w AS (PARTITION BY p.group_id, p.topic_key, p.partition
                         ORDER BY p.batch_id DESC, p.log_offset DESC, p.is_gained DESC)
          ) e
          WHERE e.is_gained = 1 AND e.previous_event = 0
            AND (e.previous_batch < e.batch_id OR e.previous_offset < e.log_offset)
          GROUP BY e.group_id, e.batch_id, e.log_offset
        ) g ON g.group_id = m.group_id AND g.batch_id = m.batch_id AND g.log_offset = m.log_offset
      ) s
    ) c
    WINDOW leading AS (PARTITION BY c.group_id, c.leads_to), following AS (PARTITION BY c.group_id, c.follows)
  ) b
  WHERE b.is_new + b.is_end > 0
) r
WHERE r.is_new > 0
