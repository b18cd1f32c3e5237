package call

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/xpkg-dev/xpkg/internal/function/protocol"
	"github.com/xpkg-dev/xpkg/internal/testing/functiontest"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

func newClient(t *testing.T, target string) *Client {
	t.Helper()
	c, err := New(target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func echo(r *protocol.Request) (*protocol.Response, error) {
	return &protocol.Response{Desired: r.Desired, Context: r.Context}, nil
}

func TestFunctionsOfBothVersionsAreCalled(t *testing.T) {
	for _, versions := range [][]string{{"v1"}, {"v1beta1"}, {"v1", "v1beta1"}} {
		for _, prefix := range []string{"", "dns:///", "dns:", "passthrough:///"} {
			c := newClient(t, prefix+functiontest.Serve(t, echo, versions...))
			got, err := c.Call(t.Context(), &protocol.Request{Context: map[string]any{"k": "v"}})
			if diff := cmp.Diff(&protocol.Response{Context: map[string]any{"k": "v"}}, got); err != nil || diff != "" {
				t.Errorf("%v: %v %s", versions, err, diff)
			}
		}
	}
}

func TestErrorsOfCallsHaveCodes(t *testing.T) {
	failing := func(err error) functiontest.Function {
		return func(*protocol.Request) (*protocol.Response, error) { return nil, err }
	}
	other := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(other.Close)
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	for name, c := range map[string]struct {
		target string
		code   errcode.Code
		text   string
	}{
		"status": {
			functiontest.Serve(t, failing(functiontest.Status{Code: 3, Message: "50% of\nit"})), ErrFunctionCall,
			"InvalidArgument: 50% of\nit",
		},
		"unknown status": {functiontest.Serve(t, failing(functiontest.Status{Code: 99})), ErrFunctionCall, "code 99"},
		"long message": {
			functiontest.Serve(t, failing(errors.New(strings.Repeat("x", 8000)))), ErrFunctionCall,
			strings.Repeat("x", maxMessageText),
		},
		"no service": {functiontest.Serve(t, echo, "v2"), ErrFunctionCall, "Unimplemented: unknown service"},
		"no HTTP/2":  {strings.TrimPrefix(other.URL, "http://"), ErrFunctionUnreachable, "without TLS"},
		"nothing":    {strings.TrimPrefix(closed.URL, "http://"), ErrFunctionUnreachable, "connection refused"},
	} {
		_, err := newClient(t, c.target).Call(t.Context(), &protocol.Request{})
		if !errors.Is(err, c.code) || !strings.HasSuffix(err.Error(), c.text) && !strings.Contains(err.Error(), c.text+":") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	for _, target := range []string{"", "localhost", "unix:///run/f.sock", "dns://8.8.8.8/f:9443", ":9443"} {
		if _, err := New(target); !errors.Is(err, ErrFunctionTarget) {
			t.Errorf("%q: got %v", target, err)
		}
	}
}

func TestCallsEndWithTheirContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	release := make(chan struct{})
	target := functiontest.Serve(t, func(*protocol.Request) (*protocol.Response, error) {
		cancel()
		<-release
		return &protocol.Response{}, nil
	})
	_, err := newClient(t, target).Call(ctx, &protocol.Request{})
	close(release)
	if !errors.Is(err, ErrFunctionUnreachable) || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestHostileRepliesAreRefused(t *testing.T) {
	for name, body := range map[string]string{
		"empty": "", "short": "\x00\x00", "wrong size": "\x00\x00\x00\x00\x09x", "compressed": "\x01\x00\x00\x00\x00",
		"two messages":               "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00",
		"no message of the protocol": "\x00\x00\x00\x00\x01\xff",
	} {
		target := serveRaw(t, body, "0")
		if _, err := newClient(t, target).Call(t.Context(), &protocol.Request{}); !errors.Is(err, ErrFunctionCall) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := newClient(t, serveRaw(t, "\x00\x00\x00\x00\x00", "")).
		Call(t.Context(), &protocol.Request{}); !errors.Is(err, ErrFunctionCall) {
		t.Errorf("no status: got %v", err)
	}
	endless := &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(zeros{}), Trailer: http.Header{}}
	if _, err := readReply(endless); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("endless: got %v", err)
	}
}

// zeros is an endless body.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

func serveRaw(t *testing.T, body, status string) string {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/grpc+proto")
		_, _ = io.WriteString(w, body)
		if status != "" {
			w.Header().Set(http.TrailerPrefix+"Grpc-Status", status)
		}
	}))
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}
