// Idempotent and transactional producers with franz-go: transactions BOOTSTRAP GROUP INPUT OUTPUT TRANSACTIONAL_ID COUNT
//
// Writes COUNT records to the input with an idempotent producer, then moves them to the output, in transactions with their offsets.
// The first transaction is aborted. Prints the number of committed records.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"grouplake/tests/clients/commands"
)

func main() {
	bootstrap, group, input, output, transactionalID := os.Args[1], os.Args[2], os.Args[3], os.Args[4], os.Args[5]
	count, err := strconv.Atoi(os.Args[6])
	commands.Check(err)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	write(ctx, bootstrap, input, count)
	session, err := kgo.NewGroupTransactSession(
		kgo.SeedBrokers(bootstrap),
		kgo.ConsumerGroup(group),
		kgo.ConsumeTopics(input),
		kgo.TransactionalID(transactionalID),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.RequireStableFetchOffsets(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.DefaultProduceTopic(output),
		kgo.WithLogger(kgo.BasicLogger(os.Stderr, kgo.LogLevelWarn, nil)),
	)
	commands.Check(err)
	defer session.Close()
	for committed, wanted := 0, kgo.TryAbort; committed < count; wanted = kgo.TryCommit {
		fetches := session.PollRecords(ctx, count/4)
		commands.Check(fetches.Err())
		commands.Check(session.Begin())
		var records []*kgo.Record
		fetches.EachRecord(func(record *kgo.Record) {
			records = append(records, &kgo.Record{Key: record.Key, Value: append([]byte("moved "), record.Value...)})
		})
		commands.Check(session.ProduceSync(ctx, records...).FirstErr())
		isCommitted, err := session.End(ctx, wanted)
		commands.Check(err)
		if isCommitted {
			committed += len(records)
		}
		fmt.Println(isCommitted, len(records))
	}
}

func write(ctx context.Context, bootstrap, topic string, count int) {
	client, err := kgo.NewClient(kgo.SeedBrokers(bootstrap), kgo.DefaultProduceTopic(topic))
	commands.Check(err)
	defer client.Close()
	var records []*kgo.Record
	for number := range count {
		records = append(records, kgo.StringRecord(fmt.Sprintf("franz %d", number)))
	}
	commands.Check(client.ProduceSync(ctx, records...).FirstErr())
}
