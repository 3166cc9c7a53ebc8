package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// OnProduceBatchWritten counts the batches of producers.
func (r *recorder) OnProduceBatchWritten(_ kgo.BrokerMetadata, _ string, _ int32, metrics kgo.ProduceBatchMetrics) {
	if r.isMeasured() {
		r.batches.Add(1)
		r.bytes.Add(int64(metrics.CompressedBytes))
	}
}

// OnFetchBatchRead counts the batches of consumers.
func (r *recorder) OnFetchBatchRead(_ kgo.BrokerMetadata, _ string, _ int32, metrics kgo.FetchBatchMetrics) {
	if r.isMeasured() {
		r.batches.Add(1)
		r.bytes.Add(int64(metrics.CompressedBytes))
	}
}

func (o *options) producer(r *recorder, more ...kgo.Opt) *kgo.Client {
	return o.client(append([]kgo.Opt{
		kgo.DefaultProduceTopic(o.topic),
		kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.ProducerBatchMaxBytes(int32(o.batchBytes)),
		kgo.ProducerLinger(o.linger),
		kgo.WithHooks(r),
	}, more...)...)
}

func (o *options) value() []byte {
	value := make([]byte, o.recordBytes)
	_, err := rand.Read(value)
	check(err)
	return value
}

// produce lets idempotent producers send records without waiting, as far as their buffers have room.
func produce(o *options, r *recorder) {
	value := o.value()
	producers := make([]*kgo.Client, o.clients)
	for number := range producers {
		producers[number] = o.producer(r)
		check(producers[number].ProduceSync(context.Background(), kgo.SliceRecord(value)).FirstErr())
	}
	r.repeat(o.clients, func(number int) {
		began := time.Now()
		producers[number].Produce(context.Background(), kgo.SliceRecord(value), func(_ *kgo.Record, err error) {
			check(err)
			r.operation(began)
		})
	})
}

// fetch lets consumers without a group read all partitions from their start, again and again.
func fetch(o *options, r *recorder) {
	r.repeat(o.clients, func(int) { o.readAll(r) })
}

func (o *options) readAll(r *recorder) {
	client := o.client(kgo.ConsumeTopics(o.topic), kgo.WithHooks(r), kgo.FetchMaxWait(200*time.Millisecond))
	defer client.Close()
	for empty := 0; empty < 2 && !r.isOver(); {
		wait, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
		fetched := client.PollFetches(wait)
		cancel()
		records := fetched.NumRecords()
		if records == 0 {
			empty++
			continue
		}
		empty = 0
		if r.isMeasured() {
			r.done.Add(int64(records))
		}
	}
}

// transact lets transactional producers commit transactions of one record each, one after the other.
func transact(o *options, r *recorder) {
	value := o.value()
	producers := make([]*kgo.Client, o.clients)
	for number := range producers {
		producers[number] = o.producer(r, kgo.TransactionalID(fmt.Sprintf("producer-%d", number)), kgo.ProducerLinger(0))
		transaction(producers[number], value)
	}
	r.repeat(o.clients, func(number int) {
		began := time.Now()
		transaction(producers[number], value)
		r.operation(began)
	})
}

func transaction(client *kgo.Client, value []byte) {
	check(client.BeginTransaction())
	check(client.ProduceSync(context.Background(), kgo.SliceRecord(value)).FirstErr())
	check(client.EndTransaction(context.Background(), kgo.TryCommit))
}
