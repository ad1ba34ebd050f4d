// Command natss-client is a publisher and a subscriber of an old mesh, made with the client library that those had.
//
//	natss-client publish   URL CLUSTER CLIENT CHANNEL               one event a line of hexadecimal digits, answered with ok or why not
//	natss-client consume   URL CLUSTER CLIENT CHANNEL DURABLE LAST ACK...   until LAST was received; acknowledges ACK... of it
//	natss-client attach    URL CLUSTER CLIENT CHANNEL DURABLE       says "attached" and stays until its input ends
package main

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/nats-io/stan.go"
)

func main() {
	if len(os.Args) < 6 {
		fail("usage: natss-client publish|consume|attach URL CLUSTER CLIENT CHANNEL [DURABLE [LAST ACK...]]")
	}
	url, cluster, client, channel := os.Args[2], os.Args[3], os.Args[4], os.Args[5]
	connection, err := stan.Connect(cluster, client, stan.NatsURL(url), stan.ConnectWait(5*time.Second))
	if err != nil {
		fail(err)
	}
	switch os.Args[1] {
	case "publish":
		publish(connection, channel)
	case "consume":
		consume(connection, channel, os.Args[6], number(os.Args[7]), os.Args[8:])
	case "attach":
		subscribe(connection, channel, os.Args[6], func(*stan.Msg) {})
		fmt.Println("attached")
		for input := bufio.NewScanner(os.Stdin); input.Scan(); {
		}
	default:
		fail(os.Args[1])
	}
	if err := connection.Close(); err != nil {
		fail(err)
	}
}

func publish(connection stan.Conn, channel string) {
	input := bufio.NewScanner(os.Stdin)
	input.Buffer(nil, 64<<20)
	for input.Scan() {
		data, err := hex.DecodeString(input.Text())
		if err != nil {
			fail(err)
		}
		if err := connection.Publish(channel, data); err != nil {
			fmt.Println(err)
		} else {
			fmt.Println("ok")
		}
	}
}

// Closing, and not unsubscribing, leaves the durable where it is.
func consume(connection stan.Conn, channel, durable string, last uint64, acks []string) {
	wanted := map[uint64]bool{}
	for _, ack := range acks {
		wanted[number(ack)] = true
	}
	done := make(chan bool)
	received := map[uint64]bool{}
	subscription := subscribe(connection, channel, durable, func(message *stan.Msg) {
		if received[message.Sequence] {
			return
		}
		received[message.Sequence] = true
		if wanted[message.Sequence] {
			if err := message.Ack(); err != nil {
				fail(err)
			}
		}
		if message.Sequence == last {
			close(done)
		}
	})
	if last > 0 {
		<-done
	}
	if err := subscription.Close(); err != nil {
		fail(err)
	}
}

func subscribe(connection stan.Conn, channel, durable string, each stan.MsgHandler) stan.Subscription {
	subscription, err := connection.Subscribe(channel, each, stan.DurableName(durable), stan.SetManualAckMode(), stan.DeliverAllAvailable())
	if err != nil {
		fail(err)
	}
	return subscription
}

func number(text string) uint64 {
	number, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		fail(err)
	}
	return number
}

func fail(why any) {
	fmt.Fprintln(os.Stderr, why)
	os.Exit(1)
}
