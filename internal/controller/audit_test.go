package controller_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"path"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// audit keeps the calls that managers make to the API server and that are carried
// out.
type audit struct {
	mu    sync.Mutex
	calls []apiCall
}

// apiCall is a call for one object, or a list of them when name is empty.
type apiCall struct {
	method, resource, name, subresource string
	body                                string
}

func (c apiCall) String() string {
	return strings.TrimSuffix(c.method+" "+c.resource+"/"+c.name+" "+c.subresource, " ")
}

// writes returns the writes of objects whose name contains a string. Writes of
// status, events and the Lock do not count.
func (a *audit) writes(part string) []string {
	var out []string
	for _, c := range a.callsFor(part) {
		if c.method != http.MethodGet && c.subresource == "" && c.resource != "events" && c.resource != "locks" {
			out = append(out, c.String())
		}
	}
	return out
}

// callsFor returns all calls for objects whose name contains a string.
func (a *audit) callsFor(part string) []apiCall {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []apiCall
	for _, c := range a.calls {
		if strings.Contains(c.name, part) {
			out = append(out, c)
		}
	}
	return out
}

// reset forgets the calls for objects whose name has a part.
func (a *audit) reset(part string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var rest []apiCall
	for _, c := range a.calls {
		if !strings.Contains(c.name, part) {
			rest = append(rest, c)
		}
	}
	a.calls = rest
}

type auditor struct {
	audit *audit
	next  http.RoundTripper
}

func (a auditor) RoundTrip(r *http.Request) (*http.Response, error) {
	c, err := callOf(r)
	if err != nil {
		return nil, err
	}
	res, err := a.next.RoundTrip(r)
	if err == nil && res.StatusCode < http.StatusBadRequest {
		a.audit.mu.Lock()
		a.audit.calls = append(a.audit.calls, c)
		a.audit.mu.Unlock()
	}
	return res, err
}

// callOf reads a call off its path: /apis/GROUP/VERSION/[namespaces/NS/]RESOURCE[/NAME[/SUB]].
func callOf(r *http.Request) (apiCall, error) {
	c := apiCall{method: r.Method}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	if len(parts) > 0 && parts[0] == "apis" {
		parts = parts[1:]
	}
	if len(parts) > 2 {
		parts = parts[2:]
	}
	if len(parts) > 2 && parts[0] == "namespaces" {
		parts = parts[2:]
	}
	for i, into := range []*string{&c.resource, &c.name, &c.subresource} {
		if i < len(parts) {
			*into = parts[i]
		}
	}
	if r.Body == nil || r.Method == http.MethodGet {
		return c, nil
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return c, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	c.body = string(body)
	if r.Method == http.MethodPost {
		var o metav1.PartialObjectMetadata
		if json.Unmarshal(body, &o) == nil {
			c.name = path.Base(o.Name)
		}
	}
	return c, nil
}
