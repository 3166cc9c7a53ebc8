// Members of several groups with franz-go that commit and report every answer: crowd BOOTSTRAP TOPIC MEMBERS INTERVAL GROUP...
//
// Each group has MEMBERS members. The committed offset is the time of the request in µs, so that it names the commit. A line of
// standard output is a JSON object: a commit that was acknowledged, with its partitions, or the error that it ended with.
// "pause" on standard input ends the commits; the members stay until the process is killed.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"grouplake/tests/clients/commands"
)

// outcome of a commit; without partitions it was not acknowledged.
type outcome struct {
	Group      string  `json:"group"`
	Member     string  `json:"member"`
	Generation int32   `json:"generation"`
	Offset     int64   `json:"offset"`
	At         int64   `json:"at"`
	Partitions []int32 `json:"partitions"`
	Error      string  `json:"error,omitempty"`
}

type member struct {
	client *kgo.Client
	name   string
	group  string
	mutex  sync.Mutex
	owned  map[int32]bool
}

var (
	output   sync.Mutex
	isPaused atomic.Bool
)

func report(o any) {
	output.Lock()
	defer output.Unlock()
	line, err := json.Marshal(o)
	commands.Check(err)
	fmt.Println(string(line))
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

func newMember(bootstrap, topic, group, name string) *member {
	m := &member{name: name, group: group, owned: map[int32]bool{}}
	gained := func(_ context.Context, client *kgo.Client, topics map[string][]int32) {
		// the topic has no records: no fetches
		client.PauseFetchTopics(topic)
		m.change(topics, true)
	}
	lost := func(_ context.Context, _ *kgo.Client, topics map[string][]int32) { m.change(topics, false) }
	client, err := kgo.NewClient(
		kgo.SeedBrokers(strings.Split(bootstrap, ",")...),
		kgo.ClientID(name),
		kgo.ConsumerGroup(group),
		kgo.ConsumeTopics(topic),
		kgo.DisableAutoCommit(),
		kgo.OnPartitionsAssigned(gained),
		kgo.OnPartitionsRevoked(lost),
		kgo.OnPartitionsLost(lost),
	)
	commands.Check(err)
	m.client = client
	go func() {
		for {
			client.PollFetches(context.Background())
		}
	}()
	return m
}

func (m *member) commit(topic string) {
	m.mutex.Lock()
	now := time.Now().UnixMicro()
	offsets := map[int32]kgo.EpochOffset{}
	for partition := range m.owned {
		offsets[partition] = kgo.EpochOffset{Epoch: -1, Offset: now}
	}
	m.mutex.Unlock()
	if len(offsets) == 0 {
		return
	}
	o := outcome{Group: m.group, Member: m.name, Offset: now, Partitions: []int32{}}
	done := func(_ *kgo.Client, request *kmsg.OffsetCommitRequest, response *kmsg.OffsetCommitResponse, err error) {
		o.At = time.Now().UnixMicro()
		if err != nil {
			o.Error = err.Error()
			return
		}
		o.Generation = request.Generation
		for _, topic := range response.Topics {
			for _, partition := range topic.Partitions {
				if partition.ErrorCode == 0 {
					o.Partitions = append(o.Partitions, partition.Partition)
				} else {
					o.Error = strconv.Itoa(int(partition.ErrorCode))
				}
			}
		}
	}
	m.client.CommitOffsetsSync(context.Background(), map[string]map[int32]kgo.EpochOffset{topic: offsets}, done)
	report(o)
}

func main() {
	bootstrap, topic, groups := os.Args[1], os.Args[2], os.Args[5:]
	count, err := strconv.Atoi(os.Args[3])
	commands.Check(err)
	interval, err := time.ParseDuration(os.Args[4])
	commands.Check(err)
	var running sync.WaitGroup
	for number := range count * len(groups) {
		m := newMember(bootstrap, topic, groups[number%len(groups)], fmt.Sprintf("franz-%d", number))
		running.Add(1)
		go func() {
			defer running.Done()
			time.Sleep(interval * time.Duration(number) / time.Duration(count*len(groups)))
			for !isPaused.Load() {
				m.commit(topic)
				time.Sleep(interval)
			}
		}()
	}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		if lines.Text() == "pause" {
			isPaused.Store(true)
			running.Wait()
			report(map[string]bool{"paused": true})
		}
	}
}
