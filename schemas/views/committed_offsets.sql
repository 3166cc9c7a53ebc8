-- What OffsetFetch would answer after a load: committed offsets, without those that the era hides. The Java coordinator
-- (era 4) does not show offsets of a group that has no group object; 0.9 kept offsets apart from groups and shows them all.
SELECT o.group_id, o.topic, o.partition, o.committed_offset, o.leader_epoch, o.metadata, o.commit_timestamp,
       o.expire_timestamp, o.topic_id, o.producer_id, o.log_partition, o.log_offset, o.record_timestamp, o.batch_id
FROM offsets o
LEFT JOIN groups g ON g.group_id = o.group_id
WHERE g.group_id IS NOT NULL OR {batch.era} = '0.9'
