-- Members, with type, state, generation and protocol of their group.
SELECT m.group_id, g.group_type, g.state, NULLIF(g.generation, -1) AS generation, g.protocol, m.member_id, m.group_instance_id,
       m.client_id, m.client_host, m.rack_id, m.member_id = g.leader AS is_leader, m.member_epoch, m.member_state, m.session_timeout_ms,
       m.rebalance_timeout_ms, m.subscribed_topics, m.subscribed_regex, m.log_partition, m.log_offset, m.record_timestamp, m.batch_id
FROM members m
JOIN groups g ON g.group_id = m.group_id
