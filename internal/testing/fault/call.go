package fault

import (
	"net/http"
	"strings"
)

// Side is the kind of server that a call is sent to.
type Side string

// The sides of a package manager.
const (
	Cluster  Side = "cluster"
	Registry Side = "registry"
)

// Call is a call of a program.
type Call struct {
	Side Side
	// Method is the HTTP method, or WATCH.
	Method string
	Path   string
}

// String returns the method and the path.
func (c Call) String() string { return c.Method + " " + c.Path }

const watch = "WATCH"

func callOf(side Side, r *http.Request) Call {
	c := Call{Side: side, Method: r.Method, Path: r.URL.Path}
	if side == Cluster && r.Method == http.MethodGet && r.URL.Query().Has("watch") {
		c.Method = watch
	}
	return c
}

// read reports whether the call is a read or a watch.
func (c Call) read() bool {
	return c.Method == http.MethodGet || c.Method == http.MethodHead || c.Method == watch
}

// counts reports whether faults apply to the call. Events and leases are not part of the
// state under test.
func (c Call) counts() bool {
	return c.Side != Cluster || !strings.Contains(c.Path, "/events") && !strings.Contains(c.Path, "/leases")
}

// repeats reports whether the call is a read that repeats the previous call, or a watch that was
// opened before. The number of such calls depends on the speed of the machine, because programs
// poll.
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
