// Reads committed records with franz-go and commits its position: committed BOOTSTRAP GROUP TOPIC COUNT
package main

import (
	"context"
	"errors"
	"os"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"grouplake/tests/clients/commands"
)

func main() {
	bootstrap, group, topic := os.Args[1], os.Args[2], os.Args[3]
	count, err := strconv.Atoi(os.Args[4])
	commands.Check(err)
	client, err := kgo.NewClient(
		kgo.SeedBrokers(bootstrap),
		kgo.ConsumerGroup(group),
		kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.DisableAutoCommit(),
		kgo.WithLogger(kgo.BasicLogger(os.Stderr, kgo.LogLevelWarn, nil)),
	)
	commands.Check(err)
	background, stop := context.WithTimeout(context.Background(), 10*time.Minute)
	defer stop()
	for read := 0; read < count; {
		fetches := client.PollFetches(background)
		// franz-go joins its group again by itself
		var session *kgo.ErrGroupSession
		if err := fetches.Err(); !errors.As(err, &session) {
			commands.Check(err)
		}
		read += fetches.NumRecords()
	}
	commands.Check(client.CommitUncommittedOffsets(background))
	client.Close()
}
