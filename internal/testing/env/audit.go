package env

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// Audit records the calls to an API server that succeed.
type Audit struct {
	mu    sync.Mutex
	calls []Call
}

// Call is a call for one object, or for a list if Name is empty.
type Call struct {
	Method, Resource, Name, Subresource string
	// Body is the body of a write.
	Body string
	// DryRun reports whether the API server only checks the call.
	DryRun bool
}

// String returns the call in the form "PUT customresourcedefinitions/NAME".
func (c Call) String() string {
	return strings.TrimSuffix(c.Method+" "+c.Resource+"/"+c.Name+" "+c.Subresource, " ")
}

// isWrite reports whether the call changes an object. Writes of status, events and the Lock do not count, and
// neither does the question for the name of the client.
func (c Call) isWrite() bool {
	return c.Method != http.MethodGet && c.Subresource == "" &&
		!slices.Contains([]string{"events", "locks", "selfsubjectreviews"}, c.Resource)
}

// Wrap returns a configuration whose calls are recorded.
func (a *Audit) Wrap(cfg *rest.Config) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return auditor{a, next} })
	return cfg
}

// Writes returns the successful writes of objects whose name contains a string, in order. It omits
// writes of statuses, events and the Lock.
func (a *Audit) Writes(part string) []string {
	out := []string{}
	for _, c := range a.Calls(part) {
		if c.isWrite() {
			out = append(out, c.String())
		}
	}
	return out
}

// Calls returns all calls for objects whose name contains a string.
func (a *Audit) Calls(part string) []Call {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(a.calls), func(c Call) bool { return !strings.Contains(c.Name, part) })
}

// Reset discards the calls for objects whose name contains a string.
func (a *Audit) Reset(part string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls = slices.DeleteFunc(a.calls, func(c Call) bool { return strings.Contains(c.Name, part) })
}

type auditor struct {
	audit *Audit
	next  http.RoundTripper
}

func (a auditor) RoundTrip(r *http.Request) (*http.Response, error) {
	c, err := parseCall(r)
	if err != nil {
		return nil, err
	}
	res, err := a.next.RoundTrip(r)
	if err == nil && res.StatusCode < http.StatusMultipleChoices {
		a.audit.mu.Lock()
		defer a.audit.mu.Unlock()
		a.audit.calls = append(a.audit.calls, c)
	}
	return res, err
}

// parseCall parses a request. Its path has the form
// /apis/GROUP/VERSION/[namespaces/NAMESPACE/]RESOURCE[/NAME[/SUBRESOURCE]], or begins with /api/VERSION.
func parseCall(r *http.Request) (Call, error) {
	c := Call{Method: r.Method, DryRun: r.URL.Query().Has("dryRun")}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	if parts[0] == "apis" {
		parts = parts[1:]
	}
	if len(parts) > 2 {
		parts = parts[2:]
	}
	if len(parts) > 2 && parts[0] == "namespaces" {
		parts = parts[2:]
	}
	for i, into := range []*string{&c.Resource, &c.Name, &c.Subresource} {
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
	c.Body = string(body)
	if r.Method == http.MethodPost {
		var o metav1.PartialObjectMetadata
		if json.Unmarshal(body, &o) == nil {
			c.Name = path.Base(o.Name)
		}
	}
	return c, nil
}
