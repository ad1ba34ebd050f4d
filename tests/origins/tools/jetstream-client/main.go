// Command jetstream-client is a publisher and a subscriber of an old mesh on JetStream, made with the official client library.
//
//	jetstream-client subscribe URL STREAM DURABLE push|pull [SUBJECT]  makes the stream and the consumer
//	jetstream-client publish   URL STREAM SUBJECT                      one event a line of hexadecimal digits, answered with ok or why not
//	jetstream-client consume   URL STREAM DURABLE LAST ACK...          until LAST was received; acknowledges ACK... of it
//	jetstream-client attach    URL STREAM DURABLE                      says "attached" and stays until its input ends
package main

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
)

// How long a consumer waits for an acknowledgement.
const ackWait = time.Second

func main() {
	if len(os.Args) < 5 {
		fail("usage: jetstream-client subscribe|publish|consume|attach URL STREAM DURABLE|SUBJECT ...")
	}
	url, stream, name := os.Args[2], os.Args[3], os.Args[4]
	connection, err := nats.Connect(url)
	check(err)
	defer connection.Close()
	js, err := connection.JetStream(nats.MaxWait(5 * time.Second))
	check(err)
	switch os.Args[1] {
	case "subscribe":
		subscribe(js, stream, name, os.Args[5], os.Args[6:])
	case "publish":
		publish(js, name)
	case "consume":
		consume(js, stream, name, number(os.Args[5]), os.Args[6:])
	case "attach":
		attach(js, stream, name)
	default:
		fail(os.Args[1])
	}
	check(connection.Flush())
}

func subscribe(js nats.JetStreamContext, stream, durable, how string, filter []string) {
	if _, err := js.StreamInfo(stream); err != nil {
		_, err := js.AddStream(&nats.StreamConfig{Name: stream, Subjects: []string{stream + ".>"}})
		check(err)
	}
	config := &nats.ConsumerConfig{Durable: durable, AckPolicy: nats.AckExplicitPolicy, AckWait: ackWait}
	if how == "push" {
		config.DeliverSubject = "deliver." + durable
		config.DeliverGroup = durable
	}
	if len(filter) > 0 {
		config.FilterSubject = filter[0]
	}
	_, err := js.AddConsumer(stream, config)
	check(err)
}

func publish(js nats.JetStreamContext, subject string) {
	input := bufio.NewScanner(os.Stdin)
	input.Buffer(nil, 64<<20)
	for number := 1; input.Scan(); number++ {
		data, err := hex.DecodeString(input.Text())
		check(err)
		message := &nats.Msg{Subject: subject, Data: data, Header: nats.Header{"ce-id": {strconv.Itoa(number)}}}
		if _, err := js.PublishMsg(message); err != nil {
			fmt.Println(err)
		} else {
			fmt.Println("ok")
		}
	}
}

// An iterator over what a durable sends, however it does.
func receive(js nats.JetStreamContext, stream, durable string) func() *nats.Msg {
	info, err := js.ConsumerInfo(stream, durable)
	check(err)
	if info.Config.DeliverSubject != "" {
		subscription, err := js.QueueSubscribeSync("", info.Config.DeliverGroup, nats.Bind(stream, durable), nats.ManualAck())
		check(err)
		return func() *nats.Msg {
			message, err := subscription.NextMsg(10 * time.Second)
			check(err)
			return message
		}
	}
	subscription, err := js.PullSubscribe("", durable, nats.Bind(stream, durable))
	check(err)
	return func() *nats.Msg {
		messages, err := subscription.Fetch(1, nats.MaxWait(10*time.Second))
		check(err)
		return messages[0]
	}
}

func consume(js nats.JetStreamContext, stream, durable string, last uint64, acks []string) {
	wanted := map[uint64]bool{}
	for _, ack := range acks {
		wanted[number(ack)] = true
	}
	next := receive(js, stream, durable)
	for {
		message := next()
		metadata, err := message.Metadata()
		check(err)
		sequence := metadata.Sequence.Stream
		if wanted[sequence] {
			check(message.AckSync())
		}
		if sequence == last {
			return
		}
	}
}

func attach(js nats.JetStreamContext, stream, durable string) {
	info, err := js.ConsumerInfo(stream, durable)
	check(err)
	if info.Config.DeliverSubject != "" {
		receive(js, stream, durable)
	} else {
		subscription, err := js.PullSubscribe("", durable, nats.Bind(stream, durable))
		check(err)
		go func() {
			for {
				_, _ = subscription.Fetch(100, nats.MaxWait(time.Minute))
			}
		}()
	}
	for {
		info, err := js.ConsumerInfo(stream, durable)
		check(err)
		if info.PushBound || info.NumWaiting > 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	fmt.Println("attached")
	for input := bufio.NewScanner(os.Stdin); input.Scan(); {
	}
}

func number(text string) uint64 {
	number, err := strconv.ParseUint(text, 10, 64)
	check(err)
	return number
}

func check(err error) {
	if err != nil {
		fail(err)
	}
}

func fail(why any) {
	fmt.Fprintln(os.Stderr, why)
	os.Exit(1)
}
