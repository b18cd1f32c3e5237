package bootstrap_test

import (
	"net/http"
	"slices"
	"strings"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"
)

// call is one question to the authorizer of an API server.
type call struct{ verb, group, resource, namespace, name string }

// calls records the requests of a manager, and which of them were denied.
type calls struct {
	mu               sync.Mutex
	allowed, refused map[call]bool
}

func newCalls() *calls { return &calls{allowed: map[call]bool{}, refused: map[call]bool{}} }

// wrap keeps the calls that go through a transport.
func (c *calls) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		res, err := next.RoundTrip(r)
		if what, ok := parseCall(r); ok && err == nil {
			c.mu.Lock()
			defer c.mu.Unlock()
			if res.StatusCode == http.StatusForbidden {
				c.refused[what] = true
			} else {
				c.allowed[what] = true
			}
			if res.StatusCode == http.StatusCreated && what.verb == "patch" {
				// An API server requires both verbs of a server-side apply that creates an object.
				what.verb = "create"
				c.allowed[what] = true
			}
		}
		return res, err
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// parseCall parses a request as an API server does. Requests for non-resource paths, such as
// discovery, are allowed for every client.
func parseCall(r *http.Request) (c call, ok bool) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case parts[0] == "api" && len(parts) > 2:
		parts = parts[2:]
	case parts[0] == "apis" && len(parts) > 3:
		c.group, parts = parts[1], parts[3:]
	default:
		return call{}, false
	}
	if parts[0] == "namespaces" && len(parts) > 2 {
		c.namespace, parts = parts[1], parts[2:]
	}
	c.resource = parts[0]
	if len(parts) > 1 {
		c.name = parts[1]
	}
	if len(parts) > 2 {
		c.resource += "/" + parts[2]
	}
	if name, ok := strings.CutPrefix(r.URL.Query().Get("fieldSelector"), "metadata.name="); ok {
		// So does an API server, for lists and watches of one object.
		defer func() { c.name = name }()
	}
	switch r.Method {
	case http.MethodGet:
		c.verb = "get"
		if c.name == "" {
			c.verb = "list"
		}
		if r.URL.Query().Get("watch") != "" {
			c.verb = "watch"
		}
	case http.MethodPost:
		c.verb = "create"
	case http.MethodPut:
		c.verb = "update"
	default:
		c.verb = strings.ToLower(r.Method)
	}
	return c, true
}

// uses reports whether one of the calls needs a verb on a resource of a rule.
func uses(all map[call]bool, rule rbacv1.PolicyRule, resource, verb string) bool {
	for c := range all {
		if c.verb == verb && c.resource == resource && slices.Contains(rule.APIGroups, c.group) &&
			(len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, c.name)) {
			return true
		}
	}
	return false
}

// used and denials return copies of the recorded requests.
func (c *calls) used() map[call]bool    { return c.copy(c.allowed) }
func (c *calls) denials() map[call]bool { return c.copy(c.refused) }

func (c *calls) copy(m map[call]bool) map[call]bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := map[call]bool{}
	for k := range m {
		out[k] = true
	}
	return out
}
