package fault

import (
	"net/http"
	"strings"
)

// Side is whom a call is made to.
type Side string

// The sides of a package manager.
const (
	Cluster  Side = "cluster"
	Registry Side = "registry"
)

// Call is one call of a program.
type Call struct {
	Side Side
	// Method is that of HTTP, or WATCH.
	Method string
	Path   string
}

// String gives the call as it is reported.
func (c Call) String() string { return c.Method + " " + c.Path }

const watch = "WATCH"

func callOf(side Side, r *http.Request) Call {
	c := Call{Side: side, Method: r.Method, Path: r.URL.Path}
	if side == Cluster && r.Method == http.MethodGet && r.URL.Query().Has("watch") {
		c.Method = watch
	}
	return c
}

// read reports whether the call changes nothing.
func (c Call) read() bool {
	return c.Method == http.MethodGet || c.Method == http.MethodHead || c.Method == watch
}

// counts reports whether the call is part of what is tested: events tell of the
// work and leases of who does it, and neither is state.
func (c Call) counts() bool {
	return c.Side != Cluster || !strings.Contains(c.Path, "/events") && !strings.Contains(c.Path, "/leases")
}

// repeats reports whether the call is no other than the one before: a program that
// polls makes as many of them as the machine is slow. A watch is one call however
// often it is opened again.
func (c Call) repeats(before []Call) bool {
	if c.Method == watch {
		for _, b := range before {
			if b == c {
				return true
			}
		}
		return false
	}
	return c.read() && len(before) > 0 && before[len(before)-1] == c
}
