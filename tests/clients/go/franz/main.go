// A member of a group with franz-go: franz BOOTSTRAP GROUP TOPIC CLIENT_ID
package main

import (
	"context"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"grouplake/tests/clients/commands"
)

type owned struct {
	sync.Mutex
	partitions map[int32]bool
}

func (o *owned) change(topics map[string][]int32, isOwned bool) {
	o.Lock()
	defer o.Unlock()
	for _, partitions := range topics {
		for _, partition := range partitions {
			if isOwned {
				o.partitions[partition] = true
			} else {
				delete(o.partitions, partition)
			}
		}
	}
	commands.Report("assigned", slices.Collect(maps.Keys(o.partitions)))
}

func (o *owned) list() []int32 {
	o.Lock()
	defer o.Unlock()
	return slices.Collect(maps.Keys(o.partitions))
}

func main() {
	bootstrap, group, topic, clientID := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	mine := &owned{partitions: map[int32]bool{}}
	gained := func(_ context.Context, _ *kgo.Client, topics map[string][]int32) { mine.change(topics, true) }
	lost := func(_ context.Context, _ *kgo.Client, topics map[string][]int32) { mine.change(topics, false) }
	client, err := kgo.NewClient(
		kgo.SeedBrokers(bootstrap),
		kgo.ClientID(clientID),
		kgo.ConsumerGroup(group),
		kgo.ConsumeTopics(topic),
		kgo.DisableAutoCommit(),
		kgo.HeartbeatInterval(200*time.Millisecond),
		kgo.OnPartitionsAssigned(gained),
		kgo.OnPartitionsRevoked(lost),
		kgo.OnPartitionsLost(lost),
		kgo.WithLogger(kgo.BasicLogger(os.Stderr, kgo.LogLevelWarn, nil)),
	)
	commands.Check(err)
	background, stop := context.WithCancel(context.Background())
	go func() {
		for background.Err() == nil {
			client.PollFetches(background)
		}
	}()
	// a broker may not list this API; then the client is to return an error without a request
	_, _ = kmsg.NewPtrDescribeConfigsRequest().RequestWith(background, client)
	commands.Read(func(offset int64) {
		partitions := mine.list()
		offsets := map[int32]kgo.EpochOffset{}
		for _, partition := range partitions {
			// with an epoch, the next owner asks where it ended, of a broker that can say so
			offsets[partition] = kgo.EpochOffset{Epoch: 0, Offset: offset + int64(partition)}
		}
		done := func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, _ *kmsg.OffsetCommitResponse, err error) {
			commands.Check(err)
		}
		client.CommitOffsetsSync(background, map[string]map[int32]kgo.EpochOffset{topic: offsets}, done)
		commands.Report("committed", partitions)
	})
	stop()
	commands.Check(client.LeaveGroupContext(context.Background()))
	client.Close()
}
