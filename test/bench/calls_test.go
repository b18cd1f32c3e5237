package bench_test

import (
	"net/http"
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
	// group, resource and name say what it is about. They are empty for what is
	// no object, as discovery.
	group, resource, name string
	// page says that it goes on with a list that an earlier call began.
	page           bool
	sent, received int64
	ended          time.Time
}

// callOf tells what a request asks of the API server.
func callOf(r *http.Request) call {
	c := call{verb: r.Method}
	c.group, c.resource, c.name = object(strings.Split(strings.Trim(r.URL.Path, "/"), "/"))
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

// object takes the path of a request apart (Kubernetes API concepts, "Resource
// URIs").
func object(path []string) (group, resource, name string) {
	switch {
	case len(path) > 2 && path[0] == "api":
		path = path[2:]
	case len(path) > 3 && path[0] == "apis":
		group, path = path[1], path[3:]
	default:
		return "", "", ""
	}
	if len(path) > 2 && path[0] == "namespaces" {
		path = path[2:]
	}
	if len(path) > 1 {
		name = path[1]
	}
	return group, path[0], name
}

// The things that calls are about.
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

// concerns reports whether a call is about a bundle: its package, a revision of
// it, one of its objects, or all definitions. What a definition that is created is
// named stands in no path, so a creation counts.
func (c call) concerns(b bundle) bool {
	return c.name == b.packageName() || strings.HasPrefix(c.name, b.packageName()+"-") ||
		b.has(c.name) || c.resource == "customresourcedefinitions" && c.name == ""
}

// calls are those of one measurement.
type calls []call

// count counts those calls that a condition holds for.
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

// requests are all calls but watches, which stay open.
func (c calls) requests() int { return len(c) - c.verb(verbWatch) }

func (c calls) writes() int { return c.requests() - c.verb(verbGet) - c.verb(verbList) }

// lists counts a list once, in however many pages it is read.
func (c calls) lists() int {
	return c.count(func(one call) bool { return one.verb == verbList && !one.page })
}

// bytes are those of the bodies, as they are sent: the API server compresses long
// answers.
func (c calls) bytes() (sent, received int64) {
	for _, one := range c {
		sent, received = sent+one.sent, received+one.received
	}
	return sent, received
}

// last is when the last request was answered, or the other time when there was
// none.
func (c calls) last(otherwise time.Time) time.Time {
	for _, one := range c {
		if one.verb != verbWatch && one.ended.After(otherwise) {
			otherwise = one.ended
		}
	}
	return otherwise
}
