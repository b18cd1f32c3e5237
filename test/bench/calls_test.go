package bench_test

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

// The verbs of calls, in the order of the table.
const (
	verbGet    = "GET"
	verbList   = "LIST"
	verbPost   = "POST"
	verbPut    = "PUT"
	verbPatch  = "PATCH"
	verbDelete = "DELETE"
	verbWatch  = "WATCH"
)

var verbs = []string{verbGet, verbList, verbPost, verbPut, verbPatch, verbDelete, verbWatch}

// A call is one request to the API server.
type call struct {
	verb string
	// group, resource, name and subresource identify the target. They are empty for requests without an object,
	// such as discovery.
	group, resource, name, subresource string
	// page marks a further page of a list.
	page           bool
	sent, received int64
	ended          time.Time
}

// parseCall returns the call of a request.
func parseCall(r *http.Request) call {
	c := call{verb: r.Method}
	c.group, c.resource, c.name, c.subresource = object(strings.Split(strings.Trim(r.URL.Path, "/"), "/"))
	query := r.URL.Query()
	switch {
	case r.Method != http.MethodGet:
	case query.Get("watch") == "true" || query.Get("watch") == "1":
		c.verb = verbWatch
	case c.resource != "" && c.name == "":
		c.verb, c.page = verbList, query.Get("continue") != ""
	}
	return c
}

// object parses the path of a request (Kubernetes API concepts, "Resource URIs").
func object(path []string) (group, resource, name, subresource string) {
	switch {
	case len(path) > 2 && path[0] == "api":
		path = path[2:]
	case len(path) > 3 && path[0] == "apis":
		group, path = path[1], path[3:]
	default:
		return "", "", "", ""
	}
	if len(path) > 2 && path[0] == "namespaces" {
		path = path[2:]
	}
	if len(path) > 1 {
		name = path[1]
	}
	if len(path) > 2 {
		subresource = path[2]
	}
	return group, path[0], name, subresource
}

// The categories of calls.
const (
	aboutObjects   = "objects of packages"
	aboutPackages  = "packages, revisions, Lock"
	aboutEvents    = "events"
	aboutDiscovery = "discovery"
	aboutOther     = "other"
)

var abouts = []string{aboutObjects, aboutPackages, aboutEvents, aboutDiscovery, aboutOther}

func (c call) about() string {
	switch {
	case c.resource == "":
		return aboutDiscovery
	case c.resource == "events":
		return aboutEvents
	case c.group == "pkg.crossplane.io":
		return aboutPackages
	case c.group == "apiextensions.k8s.io", c.group == "apiextensions.crossplane.io":
		return aboutObjects
	}
	return aboutOther
}

// concerns reports whether a call is for a bundle: its package, a revision of it, one of its objects,
// or all CRDs. The path of a POST contains no name, so every creation of a CRD counts.
func (c call) concerns(b bundle) bool {
	return c.name == b.packageName() || strings.HasPrefix(c.name, b.packageName()+"-") ||
		b.has(c.name) || c.resource == "customresourcedefinitions" && c.name == ""
}

// kind returns the verb and the resource of a call, with its subresource.
func (c call) kind() string {
	switch {
	case c.resource == "":
		return c.verb + " discovery"
	case c.subresource != "":
		return c.verb + " " + c.resource + "/" + c.subresource
	}
	return c.verb + " " + c.resource
}

// calls are the calls of one measurement.
type calls []call

// count counts the calls for which a condition holds.
func (c calls) count(which func(call) bool) int {
	n := 0
	for _, one := range c {
		if which(one) {
			n++
		}
	}
	return n
}

func (c calls) verb(verb string) int { return c.count(func(one call) bool { return one.verb == verb }) }

// kinds returns the number of calls of each kind except for watches, largest first.
func (c calls) kinds() string {
	counts := map[string]int{}
	for _, one := range c {
		if one.verb != verbWatch {
			counts[one.kind()]++
		}
	}
	kinds := slices.SortedFunc(
		maps.Keys(counts), func(a, b string) int { return cmp.Or(counts[b]-counts[a], cmp.Compare(a, b)) },
	)
	for i, kind := range kinds {
		kinds[i] = fmt.Sprintf("%d %s", counts[kind], kind)
	}
	return strings.Join(kinds, ", ")
}

// requests counts all calls except for watches, which stay open.
func (c calls) requests() int { return len(c) - c.verb(verbWatch) }

func (c calls) writes() int { return c.requests() - c.verb(verbGet) - c.verb(verbList) }

// lists counts lists. All pages of a list count once.
func (c calls) lists() int {
	return c.count(func(one call) bool { return one.verb == verbList && !one.page })
}

// bytes returns the size of the bodies on the wire: the API server compresses large responses.
func (c calls) bytes() (sent, received int64) {
	for _, one := range c {
		sent, received = sent+one.sent, received+one.received
	}
	return sent, received
}

// last returns the time of the last response, or otherwise if there was none.
func (c calls) last(otherwise time.Time) time.Time {
	for _, one := range c {
		if one.verb != verbWatch && one.ended.After(otherwise) {
			otherwise = one.ended
		}
	}
	return otherwise
}
