package expectations

import (
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// Pause is the time that a reconciliation waits for the cache to show the last write.
	Pause = 10 * time.Millisecond
	// limit is the maximum wait for the cache after a write. Without it, objects would be behind
	// forever after the API server is restored from a backup, where resourceVersions continue from
	// a lower number.
	limit = 2 * time.Second
)

// Versions holds the resourceVersions of objects that this process wrote.
type Versions struct {
	Now func() time.Time

	written Cache[types.UID, version]
}

type version struct {
	number uint64
	at     time.Time
}

// Wrote records the resourceVersion of an object that was just written. Versions that are not numbers
// are ignored.
func (v *Versions) Wrote(o metav1.Object) {
	if n, err := strconv.ParseUint(o.GetResourceVersion(), 10, 64); err == nil {
		v.written.Set(o.GetUID(), version{n, v.Now()})
	}
}

// IsBehind reports whether an object was read before its last write. Two seconds after the write,
// it returns false.
func (v *Versions) IsBehind(o metav1.Object) bool {
	_, behind := v.written.Pending(o.GetUID(), func(last version) bool {
		n, err := strconv.ParseUint(o.GetResourceVersion(), 10, 64)
		return err != nil || n >= last.number || v.Now().Sub(last.at) >= limit
	})
	return behind
}

// IsLast reports whether an object has the resourceVersion of its last write. It returns false for a write that is not
// recorded yet, and for one that a reconciliation has seen.
func (v *Versions) IsLast(o metav1.Object) bool {
	last, ok := v.written.Get(o.GetUID())
	return ok && strconv.FormatUint(last.number, 10) == o.GetResourceVersion()
}
