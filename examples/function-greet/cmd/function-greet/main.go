// Command function-greet is the runtime of the example function: it composes a Greeting.
//
// It serves FunctionRunnerService v1 over mutual TLS with the certificates in the folder
// TLS_SERVER_CERTS_DIR. Each connection reads them again: a renewed certificate needs no
// restart.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	var o options
	flag.StringVar(&o.network, "network", "tcp", "network to listen on")
	flag.StringVar(&o.address, "address", ":9443", "address to listen at")
	flag.StringVar(
		&o.certificates, "tls-certs-dir", os.Getenv("TLS_SERVER_CERTS_DIR"),
		"folder with tls.crt, tls.key and ca.crt (TLS_SERVER_CERTS_DIR)",
	)
	flag.BoolVar(&o.insecure, "insecure", false, "serve everybody, without TLS: only for tests")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "function-greet:", err)
		os.Exit(1)
	}
}
