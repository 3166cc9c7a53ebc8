// A member of a group with Sarama: sarama BOOTSTRAP GROUP TOPIC CLIENT_ID KAFKA_VERSION
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/IBM/sarama"

	"grouplake/tests/clients/commands"
)

type handler struct {
	sync.Mutex
	topic   string
	session sarama.ConsumerGroupSession
}

func (h *handler) Setup(session sarama.ConsumerGroupSession) error {
	h.Lock()
	defer h.Unlock()
	h.session = session
	commands.Report("assigned", session.Claims()[h.topic])
	return nil
}

func (h *handler) Cleanup(sarama.ConsumerGroupSession) error {
	h.Lock()
	defer h.Unlock()
	h.session = nil
	commands.Report("assigned", nil)
	return nil
}

func (h *handler) ConsumeClaim(session sarama.ConsumerGroupSession, _ sarama.ConsumerGroupClaim) error {
	<-session.Context().Done()
	return nil
}

func (h *handler) commit(offset int64) {
	h.Lock()
	defer h.Unlock()
	if h.session == nil {
		commands.Check(errors.New("the member owns nothing that it could commit"))
	}
	partitions := h.session.Claims()[h.topic]
	for _, partition := range partitions {
		h.session.MarkOffset(h.topic, partition, offset+int64(partition), "")
	}
	h.session.Commit()
	commands.Report("committed", partitions)
}

func main() {
	bootstrap, groupID, topic, clientID := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	version, err := sarama.ParseKafkaVersion(os.Args[5])
	commands.Check(err)
	config := sarama.NewConfig()
	config.ClientID = clientID
	config.Version = version
	config.Consumer.Offsets.AutoCommit.Enable = false
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Group.Heartbeat.Interval = 200 * time.Millisecond
	config.Consumer.Return.Errors = true
	group, err := sarama.NewConsumerGroup([]string{bootstrap}, groupID, config)
	commands.Check(err)
	// a failed fetch or commit comes this way only; the channel closes with the group
	go func() {
		for err := range group.Errors() {
			commands.Check(fmt.Errorf("consumer group: %w", err))
		}
	}()
	background, stop := context.WithCancel(context.Background())
	member := &handler{topic: topic}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for background.Err() == nil {
			commands.Check(group.Consume(background, []string{topic}, member))
		}
	}()
	commands.Read(member.commit)
	stop()
	<-ended
	commands.Check(group.Close())
}
