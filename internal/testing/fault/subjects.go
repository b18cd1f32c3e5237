package fault

import (
	"net/http"
	"regexp"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/controller"
)

// Subjects attributes calls to subjects. Calls of the empty subject are neither recorded nor
// changed.
type Subjects interface {
	// Of returns the subject of a call.
	Of(r *http.Request, body []byte) string
	// In returns the subject of an event of a watch.
	In(event []byte) string
}

// SingleSubject attributes all calls of a program to one subject.
type SingleSubject string

// Of implements [Subjects].
func (w SingleSubject) Of(*http.Request, []byte) string { return string(w) }

// In implements [Subjects].
func (w SingleSubject) In([]byte) string { return string(w) }

// SubjectsByName attributes calls to the names that match an expression. The subject of a call is
// the first name in its path, its query or its body, in this order. A call without a name, such as
// a discovery request, has the subject of the earlier calls of the same reconciliation. Calls whose
// path contains one of the shared words have no subject.
func SubjectsByName(name *regexp.Regexp, shared ...string) Subjects {
	return &named{name: name, shared: shared, known: map[types.UID]string{}}
}

type named struct {
	name   *regexp.Regexp
	shared []string

	mu sync.Mutex
	// known are the subjects of reconciliations.
	known map[types.UID]string
}

// Of implements [Subjects].
func (n *named) Of(r *http.Request, body []byte) string {
	for _, word := range n.shared {
		if strings.Contains(r.URL.Path, word) {
			return ""
		}
	}
	name := n.name.FindString(r.URL.Path)
	if name == "" {
		name = n.name.FindString(r.URL.RawQuery)
	}
	if name == "" {
		name = n.In(body)
	}
	id := controller.ReconcileIDFromContext(r.Context())
	if id == "" {
		return name
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if name == "" {
		return n.known[id]
	}
	n.known[id] = name
	return name
}

// In implements [Subjects].
func (n *named) In(event []byte) string { return string(n.name.Find(event)) }
