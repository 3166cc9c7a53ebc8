// A member of a group that consumes at a limited rate with franz-go: worker BOOTSTRAP GROUP TOPIC CLIENT_ID ISOLATION
//
// It commits what it has read twice a second: last record + 1, as CommitRecords does. A line "rate N" on standard input limits the
// records that it reads in a second; 0: it only keeps its membership; -1: no limit.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"grouplake/tests/clients/commands"
)

const (
	pause       = 50 * time.Millisecond
	commitEvery = 500 * time.Millisecond
	unlimited   = -1
	mostRecords = 500
)

// allowance is the rate at which records may be read.
type allowance struct {
	sync.Mutex
	rate   float64
	tokens float64
	at     time.Time
}

func (a *allowance) set(rate float64) {
	a.Lock()
	defer a.Unlock()
	a.rate, a.tokens, a.at = rate, 0, time.Now()
}

// take returns how many records may be read now.
func (a *allowance) take() int {
	a.Lock()
	defer a.Unlock()
	if a.rate == unlimited {
		return mostRecords
	}
	now := time.Now()
	a.tokens = min(a.tokens+a.rate*now.Sub(a.at).Seconds(), mostRecords)
	a.at = now
	return int(a.tokens)
}

func (a *allowance) spend(records int) {
	a.Lock()
	defer a.Unlock()
	a.tokens -= float64(records)
}

func main() {
	bootstrap, group, topic, clientID, isolation := os.Args[1], os.Args[2], os.Args[3], os.Args[4], os.Args[5]
	level := kgo.ReadUncommitted()
	if isolation == "read_committed" {
		level = kgo.ReadCommitted()
	}
	client, err := kgo.NewClient(
		kgo.SeedBrokers(bootstrap),
		kgo.ClientID(clientID),
		kgo.ConsumerGroup(group),
		kgo.ConsumeTopics(topic),
		kgo.FetchIsolationLevel(level),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.DisableAutoCommit(),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, topics map[string][]int32) {
			commands.Report("assigned", topics[topic])
		}),
		kgo.WithLogger(kgo.BasicLogger(os.Stderr, kgo.LogLevelWarn, nil)),
	)
	commands.Check(err)
	limit := &allowance{rate: unlimited}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		consume(ctx, client, limit)
	}()
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		number, found := strings.CutPrefix(lines.Text(), "rate ")
		if !found {
			commands.Check(fmt.Errorf("unknown command %q: expected \"rate N\"", lines.Text()))
		}
		rate, err := strconv.ParseFloat(number, 64)
		commands.Check(err)
		limit.set(rate)
		commands.Report("rate", nil)
	}
	stop()
	<-ended
	commands.Check(client.LeaveGroupContext(context.Background()))
	client.Close()
}

// consume reads within the limit, and commits. A broker that does not answer delays a commit, which the next one repeats.
func consume(ctx context.Context, client *kgo.Client, limit *allowance) {
	var unread []*kgo.Record
	committed := time.Now()
	for ctx.Err() == nil {
		if records := limit.take(); records > 0 {
			waiting, cancel := context.WithTimeout(ctx, pause)
			fetches := client.PollRecords(waiting, records)
			cancel()
			limit.spend(fetches.NumRecords())
			unread = append(unread, fetches.Records()...)
		} else {
			time.Sleep(pause)
		}
		if len(unread) > 0 && time.Since(committed) >= commitEvery {
			waiting, cancel := context.WithTimeout(ctx, 30*time.Second)
			if client.CommitRecords(waiting, unread...) == nil {
				unread = nil
			}
			cancel()
			committed = time.Now()
		}
	}
}
