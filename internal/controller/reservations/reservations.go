// Package reservations keeps packages that contain the same object from each installing a part of
// its objects: a package reserves all of its objects, or none, before it writes the first one. If
// several packages are installed at the same time, the oldest one gets the object, unless another
// one has begun to write its objects.
//
// Reservations are kept in memory. An existing object has owner references, from which the plan
// decides; a reservation only bridges the time until the object exists.
package reservations

import (
	"cmp"
	"errors"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// Key names a package.
type Key struct{ Kind, Name string }

// KeyOf returns the key of a package.
func KeyOf(p v1.Package) Key { return Key{p.PackageKind(), p.GetName()} }

// Reservations holds the reserved objects of all packages. It is safe for concurrent use.
type Reservations struct {
	mu       sync.Mutex
	objects  map[plan.Ref]*Reservation
	packages map[Key]*Reservation
}

// New returns an empty set of reservations.
func New() *Reservations {
	return &Reservations{objects: map[plan.Ref]*Reservation{}, packages: map[Key]*Reservation{}}
}

// Reservation holds the reserved objects of one package.
type Reservation struct {
	all     *Reservations
	key     Key
	created metav1.Time
	refs    []plan.Ref
	// composed are the CRDs among refs that Crossplane creates.
	composed []plan.Ref
	// committed is set once the package has begun to write its objects.
	committed bool
}

// Of returns the reservation of a package, which is empty at first.
func (a *Reservations) Of(p v1.Package) *Reservation {
	a.mu.Lock()
	defer a.mu.Unlock()
	key := KeyOf(p)
	if a.packages[key] == nil {
		a.packages[key] = &Reservation{all: a, key: key, created: p.GetCreationTimestamp()}
	}
	return a.packages[key]
}

// Release frees all objects of a package.
func (a *Reservations) Release(key Key) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if old := a.packages[key]; old != nil {
		old.free()
		delete(a.packages, key)
	}
}

// Holders returns the holders of the objects that some packages have begun to write.
func (a *Reservations) Holders(of map[Key]bool) plan.Holders {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := plan.Holders{}
	for ref, r := range a.objects {
		if r.committed && of[r.key] {
			out.Put(r.key.Kind+"/"+r.key.Name, ref)
		}
	}
	return out
}

// Reserve reserves objects, and the CRDs that Crossplane creates from them, in place of the objects
// that were reserved before. It fails, and changes nothing, if a package that takes precedence
// holds one of them.
func (r *Reservation) Reserve(objects, composed []plan.Ref) error {
	refs := slices.Concat(objects, composed)
	r.all.mu.Lock()
	defer r.all.mu.Unlock()
	var rivals []*Reservation
	for _, ref := range refs {
		other := r.all.objects[ref]
		if other == nil || other == r {
			continue
		}
		if !r.precedes(other) {
			return heldError(ref, other, composed)
		}
		rivals = append(rivals, other)
	}
	for _, other := range rivals {
		other.free()
	}
	r.free()
	r.refs, r.composed, r.all.packages[r.key] = refs, composed, r
	for _, ref := range refs {
		r.all.objects[ref] = r
	}
	return nil
}

// precedes reports whether r may take the objects that other has reserved: other has not begun to
// write, and r is older.
func (r *Reservation) precedes(other *Reservation) bool {
	if other.committed {
		return false
	}
	return cmp.Or(
		r.created.Time.Compare(other.created.Time), cmp.Compare(r.key.Name, other.key.Name),
		cmp.Compare(r.key.Kind, other.key.Kind),
	) < 0
}

// Commit makes the reservation final, because its objects are written next. It fails if an older package
// has taken some of them meanwhile. A plan with refusals frees the objects; but a package keeps the
// objects that it has written while one of them is deleted and created again.
func (r *Reservation) Commit(p plan.Plan) error {
	r.all.mu.Lock()
	defer r.all.mu.Unlock()
	for _, ref := range r.refs {
		if other := r.all.objects[ref]; other != r {
			return heldError(ref, other, r.composed)
		}
	}
	if len(p.Refusals) == 0 {
		r.committed = true
		return nil
	}
	if !r.committed || !plan.OnlyDeleting(p.Refusals) {
		r.free()
		r.committed = false
	}
	return nil
}

// free frees the objects that are still reserved. The caller holds the mutex.
func (r *Reservation) free() {
	for _, ref := range r.refs {
		if r.all.objects[ref] == r {
			delete(r.all.objects, ref)
		}
	}
}

func heldError(ref plan.Ref, holder *Reservation, composed []plan.Ref) error {
	object := ref.Kind + " " + ref.Name
	if slices.Contains(composed, ref) {
		object += ", which Crossplane creates for the package,"
	}
	if holder == nil {
		return apply.ErrMoved.New(nil, "%s was reserved by another package", object)
	}
	why := errors.New(object + " belongs to " + holder.key.Kind + "/" + holder.key.Name)
	return apply.ErrRefused.New(why, "objects of the package cannot be established")
}
