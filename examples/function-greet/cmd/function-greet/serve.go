package main

import (
	"context"
	"errors"
	"fmt"
	"net"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

// options configures the server of the function.
type options struct {
	network, address string
	// certificates is the folder with the certificate of the server and the
	// authorities of its clients.
	certificates string
	insecure     bool
}

// run serves until ctx ends, and then finishes the calls in flight.
func run(ctx context.Context, o options) error {
	creds, err := o.credentials()
	if err != nil {
		return err
	}
	l, err := net.Listen(o.network, o.address)
	if err != nil {
		return fmt.Errorf("cannot listen: %w", err)
	}
	server := grpc.NewServer(grpc.Creds(creds))
	fnv1.RegisterFunctionRunnerServiceServer(server, service{})
	stop := context.AfterFunc(ctx, server.GracefulStop)
	defer stop()
	return server.Serve(l)
}

func (o options) credentials() (credentials.TransportCredentials, error) {
	switch {
	case o.insecure:
		return insecure.NewCredentials(), nil
	case o.certificates == "":
		return nil, errors.New("there is no folder with certificates: set TLS_SERVER_CERTS_DIR, or --insecure for a test")
	}
	config, err := mutualTLS(o.certificates)
	if err != nil {
		return nil, err
	}
	return credentials.NewTLS(config), nil
}

// service is the function as a server.
type service struct {
	fnv1.UnimplementedFunctionRunnerServiceServer
}

// RunFunction runs one step of a pipeline.
func (service) RunFunction(_ context.Context, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	return greet(req), nil
}
