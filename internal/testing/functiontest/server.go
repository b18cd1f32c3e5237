// Package functiontest serves functions in tests.
package functiontest

import (
	"encoding/binary"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/function/protocol"
)

// Function answers a call. An error is returned to the caller as a status.
type Function func(*protocol.Request) (*protocol.Response, error)

// Status is the error of a function with a code of gRPC.
type Status struct {
	Code    int
	Message string
}

// Error returns the message.
func (s Status) Error() string { return s.Message }

// Serve serves a function on the loopback interface until the test ends, and returns its address. Versions are the
// served versions of the protocol; the default is v1.
func Serve(tb testing.TB, f Function, versions ...string) string {
	tb.Helper()
	if len(versions) == 0 {
		versions = []string{"v1"}
	}
	mux := http.NewServeMux()
	for _, v := range versions {
		mux.HandleFunc("POST /apiextensions.fn.proto."+v+".FunctionRunnerService/RunFunction", f.serve)
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		writeStatus(w.Header(), Status{Code: 12, Message: "unknown service"})
	})
	server := httptest.NewUnstartedServer(mux)
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	tb.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

func (f Function) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil || len(body) < 5 || r.Header.Get("Content-Type") != "application/grpc+proto" ||
		r.Header.Get("Te") != "trailers" {
		writeStatus(w.Header(), Status{Code: 3, Message: "not a message of gRPC"})
		return
	}
	req, err := protocol.UnmarshalRequest(body[5:])
	if err != nil {
		writeStatus(w.Header(), Status{Code: 3, Message: err.Error()})
		return
	}
	var out []byte
	reply, err := f(req)
	if err == nil {
		out, err = protocol.MarshalResponse(reply)
	}
	if err != nil {
		var status Status
		if !errors.As(err, &status) {
			status = Status{Code: 2, Message: err.Error()}
		}
		writeStatus(w.Header(), status)
		return
	}
	w.Header().Set("Content-Type", "application/grpc+proto")
	prefix := make([]byte, 5)
	binary.BigEndian.PutUint32(prefix[1:], uint32(len(out)))
	_, _ = w.Write(append(prefix, out...)) // The caller may have gone.
	w.Header().Set(http.TrailerPrefix+"Grpc-Status", "0")
}

func writeStatus(h http.Header, s Status) {
	h.Set("Content-Type", "application/grpc+proto")
	h.Set("Grpc-Status", strconv.Itoa(s.Code))
	h.Set("Grpc-Message", strings.ReplaceAll(strings.ReplaceAll(s.Message, "%", "%25"), "\n", "%0A"))
}
