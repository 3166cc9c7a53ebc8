package main

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// member owns partitions of the topic and commits all of them at once.
type member struct {
	client *kgo.Client
	mutex  sync.Mutex
	owned  map[int32]bool
}

func (m *member) change(topics map[string][]int32, isOwned bool) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	for _, partitions := range topics {
		for _, partition := range partitions {
			if isOwned {
				m.owned[partition] = true
			} else {
				delete(m.owned, partition)
			}
		}
	}
}

func (m *member) partitions() []int32 {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	found := make([]int32, 0, len(m.owned))
	for partition := range m.owned {
		found = append(found, partition)
	}
	return found
}

func newMember(o *options, number int) *member {
	m := &member{owned: map[int32]bool{}}
	gained := func(_ context.Context, _ *kgo.Client, topics map[string][]int32) { m.change(topics, true) }
	lost := func(_ context.Context, _ *kgo.Client, topics map[string][]int32) { m.change(topics, false) }
	m.client = o.client(
		kgo.ClientID(fmt.Sprintf("member-%d", number)),
		// groups of an earlier run still wait for its members
		kgo.ConsumerGroup(fmt.Sprintf("members-%d-%d", os.Getpid(), number/o.groupSize)),
		kgo.ConsumeTopics(o.topic),
		kgo.DisableAutoCommit(),
		kgo.OnPartitionsAssigned(gained),
		kgo.OnPartitionsRevoked(lost),
		kgo.OnPartitionsLost(lost),
	)
	go func() {
		for {
			m.client.PollFetches(context.Background())
		}
	}()
	return m
}

func (m *member) commit(topic string, offset int64) {
	offsets := map[int32]kgo.EpochOffset{}
	for _, partition := range m.partitions() {
		offsets[partition] = kgo.EpochOffset{Epoch: -1, Offset: offset}
	}
	done := func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, response *kmsg.OffsetCommitResponse, err error) {
		check(err)
		for _, topic := range response.Topics {
			for _, partition := range topic.Partitions {
				if partition.ErrorCode != 0 {
					check(fmt.Errorf("commit of partition %d: error %d", partition.Partition, partition.ErrorCode))
				}
			}
		}
	}
	m.client.CommitOffsetsSync(context.Background(), map[string]map[int32]kgo.EpochOffset{topic: offsets}, done)
}

// commit lets members commit their partitions, when all own equally many and have committed once.
func commit(o *options, r *recorder) {
	members := make([]*member, o.clients)
	for number := range members {
		members[number] = newMember(o, number)
	}
	for _, m := range members {
		for len(m.partitions()) == 0 {
			time.Sleep(10 * time.Millisecond)
		}
	}
	awaitEqualShares(o, members)
	r.start()
	var running sync.WaitGroup
	for number, m := range members {
		running.Go(func() { m.commitUntilEnd(o, r, number) })
	}
	running.Wait()
}

// awaitEqualShares waits until the members of each group have owned equally many partitions for a second.
func awaitEqualShares(o *options, members []*member) {
	for stable := 0; stable < 10; stable++ {
		time.Sleep(100 * time.Millisecond)
		share := len(members[0].partitions())
		for _, m := range members {
			if len(m.partitions()) != share {
				stable = 0
			}
		}
	}
}

func (m *member) commitUntilEnd(o *options, r *recorder, number int) {
	interval := time.Duration(0)
	if o.rate > 0 {
		interval = time.Duration(float64(o.clients) / o.rate * float64(time.Second))
	}
	next := time.Now().Add(interval * time.Duration(number) / time.Duration(o.clients))
	for offset := int64(1); !r.isOver(); offset++ {
		if interval == 0 {
			next = time.Now()
		}
		time.Sleep(time.Until(next))
		// measured from the time at which the commit was due
		m.commit(o.topic, offset)
		r.operation(next)
		next = next.Add(interval)
	}
}
