// Package call calls functions over gRPC without TLS, as they serve with --insecure.
//
// A call is one unary request, which HTTP/2 of the standard library can carry: a client library of gRPC would start
// with every command.
package call

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"syscall"
	"time"

	"github.com/xpkg-dev/xpkg/internal/function/protocol"
)

// Methods of the versions of the protocol, the newest first.
var methods = []string{
	"/apiextensions.fn.proto.v1.FunctionRunnerService/RunFunction",
	"/apiextensions.fn.proto.v1beta1.FunctionRunnerService/RunFunction",
}

const (
	// prefixLength is the length of the prefix of a gRPC message: a flag for compression, and the size.
	prefixLength = 5
	// connectTimeout limits the time for a connection.
	connectTimeout = 10 * time.Second
	// maxMessageText limits the text of an error of a function.
	maxMessageText = 4096
)

// Client calls the function at one address. It is safe for concurrent use.
type Client struct {
	address string
	http    *http.Client
}

// New returns a client for a gRPC target such as localhost:9443 or dns:///localhost:9443.
func New(target string) (*Client, error) {
	at, err := address(target)
	if err != nil {
		return nil, err
	}
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	dialer := net.Dialer{Timeout: connectTimeout}
	// Functions are never behind a proxy.
	transport := &http.Transport{Protocols: protocols, DialContext: dialer.DialContext, DisableCompression: true}
	return &Client{address: at, http: &http.Client{Transport: transport}}, nil
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Call calls the function once: with version v1 of the protocol, or with v1beta1 if the function has only that.
func (c *Client) Call(ctx context.Context, r *protocol.Request) (*protocol.Response, error) {
	message, err := protocol.MarshalRequest(r)
	if err != nil {
		return nil, ErrFunctionCall.New(err, "cannot encode the request for the function at %s", c.address)
	}
	var reply []byte
	for _, method := range methods {
		reply, err = c.unary(ctx, method, message)
		var status *statusError
		if !errors.As(err, &status) || status.code != codeUnimplemented {
			break
		}
	}
	if err != nil {
		return nil, c.classify(ctx, err)
	}
	out, err := protocol.UnmarshalResponse(reply)
	if err != nil {
		return nil, ErrFunctionCall.New(err, "the response of the function at %s is not valid", c.address)
	}
	return out, nil
}

// classify returns the error of a call with a code.
func (c *Client) classify(ctx context.Context, err error) error {
	var status *statusError
	switch {
	case ctx.Err() != nil:
		return ErrFunctionUnreachable.New(context.Cause(ctx), "the function at %s did not answer in time", c.address).
			WithDo("Allow more time with --timeout.")
	case errors.As(err, &status):
		return ErrFunctionCall.New(status, "the function at %s answered with an error", c.address)
	case errors.Is(err, syscall.ECONNREFUSED):
		return ErrFunctionUnreachable.New(syscall.ECONNREFUSED, "cannot call the function at %s", c.address)
	}
	var failed *url.Error
	if errors.As(err, &failed) {
		err = failed.Err
	}
	return ErrFunctionUnreachable.New(err, "cannot call the function at %s without TLS", c.address)
}

// unary sends one message, and returns the message of the response.
func (c *Client) unary(ctx context.Context, method string, message []byte) ([]byte, error) {
	body := make([]byte, prefixLength, prefixLength+len(message))
	binary.BigEndian.PutUint32(body[1:], uint32(len(message))) // MarshalRequest limits the size.
	body = append(body, message...)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+c.address+method, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header = http.Header{"Content-Type": {"application/grpc+proto"}, "Te": {"trailers"}, "User-Agent": {"xpkg"}}
	if deadline, ok := ctx.Deadline(); ok {
		req.Header.Set("Grpc-Timeout", strconv.FormatInt(max(1, min(time.Until(deadline).Milliseconds(), 99_999_999)), 10)+
			"m")
	}
	res, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the server does not serve gRPC: %s", res.Status)
	}
	return readReply(res)
}

// readReply reads the message and the status of a response. The status is in the trailer, or in the header of a
// response without a message.
func readReply(res *http.Response) ([]byte, error) {
	// One more byte shows that there is more than one message.
	body, err := io.ReadAll(io.LimitReader(res.Body, prefixLength+protocol.MaxMessage+1))
	if err != nil {
		return nil, err
	}
	if len(body) > prefixLength+protocol.MaxMessage {
		return nil,
			&statusError{code: codeInternal, message: fmt.Sprintf("the response has more than %d bytes", protocol.MaxMessage)}
	}
	header := res.Trailer
	if header.Get(statusHeader) == "" {
		header = res.Header
	}
	if err := statusOf(header); err != nil {
		return nil, err
	}
	if len(body) < prefixLength || body[0] != 0 || int(binary.BigEndian.Uint32(body[1:])) != len(body)-prefixLength {
		return nil, &statusError{code: codeInternal, message: "the response is not one uncompressed message"}
	}
	return body[prefixLength:], nil
}
