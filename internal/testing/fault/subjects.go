package fault

import (
	"net/http"
	"regexp"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/controller"
)

// Subjects attributes calls. The empty subject is nobody's: its calls are neither
// counted nor struck.
type Subjects interface {
	// Of gives the subject of a call.
	Of(r *http.Request, body []byte) string
	// In gives the subject of one event of a watch.
	In(event []byte) string
}

// Whole makes everything that the program does one subject.
type Whole string

// Of implements [Subjects].
func (w Whole) Of(*http.Request, []byte) string { return string(w) }

// In implements [Subjects].
func (w Whole) In([]byte) string { return string(w) }

// Named makes a subject of each name: a call is of the first name that its path or
// else its body holds. A call without a name, such as one that asks what the API
// server serves, is of the name for which the same reconciliation made its earlier
// calls. Calls whose path holds one of the shared words are nobody's.
func Named(name *regexp.Regexp, shared ...string) Subjects {
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
	who := n.name.FindString(r.URL.Path)
	if who == "" {
		who = n.name.FindString(r.URL.RawQuery)
	}
	if who == "" {
		who = n.In(body)
	}
	id := controller.ReconcileIDFromContext(r.Context())
	if id == "" {
		return who
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if who == "" {
		return n.known[id]
	}
	n.known[id] = who
	return who
}

// In implements [Subjects].
func (n *named) In(event []byte) string { return string(n.name.Find(event)) }
