// Command nats-streaming-server is the plain NATS Streaming server of the release pinned in go.mod, with the stores that need
// nothing else.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"

	natsd "github.com/nats-io/nats-server/v2/server"
	stand "github.com/nats-io/nats-streaming-server/server"
)

func main() {
	fs := flag.NewFlagSet("nats-streaming-server", flag.ExitOnError)
	version := func() { fmt.Println(stand.VERSION); os.Exit(0) }
	usage := func() { fmt.Println("usage: nats-streaming-server [flags of NATS Streaming]"); os.Exit(0) }
	streaming, server, err := stand.ConfigureOptions(fs, os.Args[1:], version, usage, natsd.PrintTLSHelpAndDie)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	streaming.EnableLogging = true
	if _, err := stand.RunServerWithOpts(streaming, server); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	runtime.Goexit()
}
