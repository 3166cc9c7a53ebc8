// Load on a server with franz-go: clients MODE BOOTSTRAP TOPIC [OPTIONS].
//
// It prints "begin" when the measurement begins, and one JSON object when it ends.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

type options struct {
	bootstrap, topic string
	clients          int
	groupSize        int
	rate             float64
	recordBytes      int
	batchBytes       int
	linger           time.Duration
	warmup, length   time.Duration
}

// A mode runs the load until the recorder's end.
var modes = map[string]func(*options, *recorder){
	"commit":   commit,
	"produce":  produce,
	"fetch":    fetch,
	"transact": transact,
}

func main() {
	if len(os.Args) < 4 || modes[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: clients commit|produce|fetch|transact BOOTSTRAP TOPIC [OPTIONS]")
		os.Exit(2)
	}
	o := &options{bootstrap: os.Args[2], topic: os.Args[3]}
	flags := flag.NewFlagSet(os.Args[1], flag.ExitOnError)
	flags.IntVar(&o.clients, "clients", 1, "number of clients, each with connections of its own")
	flags.IntVar(&o.groupSize, "group-size", 10, "members of a group")
	flags.Float64Var(&o.rate, "rate", 0, "commits per second of all members; 0: each sends the next after the answer")
	flags.IntVar(&o.recordBytes, "record-bytes", 1024, "bytes of a record's value")
	flags.IntVar(&o.batchBytes, "batch-bytes", 16384, "largest batch of a producer (batch.size)")
	flags.DurationVar(&o.linger, "linger", 5*time.Millisecond, "wait of a producer for more records (linger.ms)")
	flags.DurationVar(&o.warmup, "warmup", time.Second, "time before the measurement")
	flags.DurationVar(&o.length, "length", 5*time.Second, "length of the measurement")
	check(flags.Parse(os.Args[4:]))
	r := newRecorder(o)
	modes[os.Args[1]](o, r)
	line, err := json.Marshal(r.result())
	check(err)
	fmt.Println(string(line))
	// without leaving the groups: their end is not part of the measurement
	os.Exit(0)
}

func (o *options) client(more ...kgo.Opt) *kgo.Client {
	client, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(o.bootstrap),
		kgo.WithLogger(kgo.BasicLogger(os.Stderr, kgo.LogLevelError, nil)),
	}, more...)...)
	check(err)
	return client
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
