package leader_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/xpkg-dev/xpkg/internal/testing/env"
)

// A recorder forwards the requests of one manager to the API server, and records the accepted writes.
type recorder struct {
	kubeconfig string

	mu     sync.Mutex
	writes []write
}

// write is an accepted write. The resourceVersion gives its position among all writes to the API
// server.
type write struct {
	revision int64
	at       time.Time
	what     string
}

// record starts a recorder and writes a kubeconfig with its address.
func record(t *testing.T, cfg *rest.Config) *recorder {
	t.Helper()
	target, err := url.Parse(cfg.Host)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	r := &recorder{}
	server := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(target)
			// keep reads JSON.
			accept := p.Out.Header.Get("Accept")
			p.Out.Header.Set("Accept", strings.ReplaceAll(accept, "application/vnd.kubernetes.protobuf", "application/json"))
		},
		Transport:      transport,
		FlushInterval:  -1,
		ModifyResponse: r.keep,
		// Managers that are killed leave calls behind.
		ErrorLog: log.New(io.Discard, "", 0),
	})
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	r.kubeconfig = env.WriteKubeconfig(t, server.URL)
	return r
}

// keep records a write, except for writes of the Lease.
func (r *recorder) keep(res *http.Response) error {
	req := res.Request
	if req.Method == http.MethodGet || res.StatusCode >= 300 || strings.Contains(req.URL.Path, "/leases") {
		return nil
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	_ = res.Body.Close()
	res.Body = io.NopCloser(bytes.NewReader(body))
	var object struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(body, &object); err != nil {
		return fmt.Errorf("an answer that says nothing of its place: %w", err)
	}
	revision, err := strconv.ParseInt(object.Metadata.ResourceVersion, 10, 64)
	if err != nil {
		// The response to an immediate deletion has no resourceVersion of its own.
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.writes = append(r.writes, write{revision, time.Now(), req.Method + " " + req.URL.Path})
	return nil
}

// all returns the writes so far.
func (r *recorder) all() []write {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]write(nil), r.writes...)
}
