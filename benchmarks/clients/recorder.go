package main

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// recorder counts what is done between the warm-up and the end, with the latency of each operation.
type recorder struct {
	options    *options
	begin, end time.Time
	done       atomic.Int64
	batches    atomic.Int64
	bytes      atomic.Int64
	mutex      sync.Mutex
	latencies  []float64
}

type result struct {
	Done    int64   `json:"done"`
	Batches int64   `json:"batches"`
	Bytes   int64   `json:"bytes"`
	Seconds float64 `json:"seconds"`
	P50     float64 `json:"p50_ms"`
	P99     float64 `json:"p99_ms"`
}

func newRecorder(o *options) *recorder {
	return &recorder{options: o}
}

// start begins the warm-up, and reports the begin of the measurement later.
func (r *recorder) start() {
	r.begin = time.Now().Add(r.options.warmup)
	r.end = r.begin.Add(r.options.length)
	time.AfterFunc(r.options.warmup, func() { fmt.Println("begin") })
}

func (r *recorder) isOver() bool {
	return time.Now().After(r.end)
}

// repeat starts the measurement, and lets every client repeat an operation until the end; the operation gets its number.
func (r *recorder) repeat(clients int, operation func(number int)) {
	r.start()
	var running sync.WaitGroup
	for number := range clients {
		running.Go(func() {
			for !r.isOver() {
				operation(number)
			}
		})
	}
	running.Wait()
}

// isMeasured returns whether an operation that ends now counts.
func (r *recorder) isMeasured() bool {
	now := time.Now()
	return now.After(r.begin) && now.Before(r.end)
}

// operation counts one operation that began at a time and ends now.
func (r *recorder) operation(began time.Time) {
	if !r.isMeasured() {
		return
	}
	r.done.Add(1)
	r.latency(time.Since(began))
}

func (r *recorder) latency(took time.Duration) {
	r.mutex.Lock()
	r.latencies = append(r.latencies, took.Seconds()*1000)
	r.mutex.Unlock()
}

func (r *recorder) result() result {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	slices.Sort(r.latencies)
	return result{
		r.done.Load(), r.batches.Load(), r.bytes.Load(), r.options.length.Seconds(), r.percentile(0.5), r.percentile(0.99),
	}
}

func (r *recorder) percentile(share float64) float64 {
	if len(r.latencies) == 0 {
		return 0
	}
	return r.latencies[int(share*float64(len(r.latencies)-1))]
}
