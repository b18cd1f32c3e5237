// Command call-function calls a function once over mutual TLS, as a composition engine
// does, with a certificate of the function's CA.
//
//	call-function --target HOST:PORT --server-name NAME --tls-certs-dir FOLDER <REQUEST.json
//
// Request and response are a RunFunctionRequest v1 and RunFunctionResponse v1 in JSON.
// The exit code is 1 if the function cannot be called, and 2 if the response contains a
// fatal result.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/protobuf/encoding/protojson"
)

func main() {
	var c call
	flag.StringVar(&c.target, "target", "127.0.0.1:9443", "where the function answers")
	flag.StringVar(&c.serverName, "server-name", "", "name that the function's certificate must have")
	flag.StringVar(&c.certificates, "tls-certs-dir", "", "folder with tls.crt, tls.key and ca.crt")
	flag.BoolVar(&c.anonymous, "anonymous", false, "show no certificate; only ca.crt is read")
	flag.DurationVar(&c.timeout, "timeout", 10*time.Second, "how long to wait")
	flag.Parse()
	err := c.run(context.Background(), os.Stdin, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "call-function:", err)
	}
	switch {
	case errors.Is(err, errFatal):
		os.Exit(2)
	case err != nil:
		os.Exit(1)
	}
}

var errFatal = errors.New("the response contains a fatal result")

// call is one call of a function.
type call struct {
	target, serverName, certificates string
	anonymous                        bool
	timeout                          time.Duration
}

func (c call) run(ctx context.Context, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	text, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	req := &fnv1.RunFunctionRequest{}
	if err := protojson.Unmarshal(text, req); err != nil {
		return fmt.Errorf("cannot read the request: %w", err)
	}
	config, err := c.tls()
	if err != nil {
		return err
	}
	// Functions publish no service config in DNS, and the lookup can take seconds.
	conn, err := grpc.NewClient(
		c.target, grpc.WithTransportCredentials(credentials.NewTLS(config)), grpc.WithDisableServiceConfig(),
	)
	if err != nil {
		return err
	}
	defer conn.Close()
	resp, err := fnv1.NewFunctionRunnerServiceClient(conn).RunFunction(ctx, req)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(out, protojson.MarshalOptions{Multiline: true}.Format(resp)); err != nil {
		return err
	}
	for _, r := range resp.GetResults() {
		if r.GetSeverity() == fnv1.Severity_SEVERITY_FATAL {
			return fmt.Errorf("%w: %s", errFatal, r.GetMessage())
		}
	}
	return nil
}

func (c call) tls() (*tls.Config, error) {
	authorities, err := os.ReadFile(filepath.Join(c.certificates, "ca.crt"))
	if err != nil {
		return nil, err
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: c.serverName, RootCAs: x509.NewCertPool()}
	if !config.RootCAs.AppendCertsFromPEM(authorities) {
		return nil, errors.New("there is no authority in ca.crt")
	}
	if c.anonymous {
		return config, nil
	}
	own, err := tls.LoadX509KeyPair(filepath.Join(c.certificates, "tls.crt"), filepath.Join(c.certificates, "tls.key"))
	config.Certificates = []tls.Certificate{own}
	return config, err
}
