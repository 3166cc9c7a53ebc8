-- Answers of OffsetFetch after a load: committed offsets, without those that the era hides. The Java coordinator (era 4) hides
-- the offsets of a group without a group object. Kafka 0.9 stored offsets independently of groups and returns all of them.
SELECT o.group_id, o.topic, o.partition, o.committed_offset, o.leader_epoch, o.metadata, o.commit_timestamp,
       o.expire_timestamp, o.topic_id, o.producer_id, o.log_partition, o.log_offset, o.record_timestamp, o.batch_id
FROM offsets o
LEFT JOIN groups g ON g.group_id = o.group_id
WHERE g.group_id IS NOT NULL OR {batch.era} = '0.9'
