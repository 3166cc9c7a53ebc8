"""The positions of groups: the rows of the table `lag`, without lag."""

import pyarrow as pa

from pipelines.runtime.timestamps import TIMESTAMP

#: Commits and assigned partitions: a partition may have only one of them. While a group reconciles, a partition that two members
#: hold has one row.
POSITIONS = """
SELECT COALESCE(c.group_id, o.group_id) AS group_id, COALESCE(c.topic, o.topic) AS topic,
       COALESCE(c.partition, o.partition) AS partition, o.consumer_id, o.member_host, o.client_id,
       c.committed_offset, c.commit_timestamp, c.record_timestamp, c.topic_id
FROM committed_offsets c
FULL JOIN (
  SELECT a.group_id, a.topic, a.partition, min(a.member_id) AS consumer_id, min(m.client_host) AS member_host,
         min(a.client_id) AS client_id
  FROM assignments a JOIN members m ON m.group_id = a.group_id AND m.member_id = a.member_id
  WHERE a.topic IS NOT NULL GROUP BY a.group_id, a.topic, a.partition
) o ON o.group_id = c.group_id AND o.topic = c.topic AND o.partition = c.partition
ORDER BY group_id, topic, partition
"""

#: Columns of POSITIONS.
POSITION_SCHEMA = pa.schema(
    {
        "group_id": pa.string(),
        "topic": pa.string(),
        "partition": pa.int32(),
        "consumer_id": pa.string(),
        "member_host": pa.string(),
        "client_id": pa.string(),
        "committed_offset": pa.int64(),
        "commit_timestamp": TIMESTAMP,
        "record_timestamp": TIMESTAMP,
        "topic_id": pa.string(),
    }
)
