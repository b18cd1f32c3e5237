package manager

import (
	"cmp"
	"errors"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/plan"
)

// claims keeps packages that bring the same object from each installing a part of
// it: a package stakes its claim to all of its objects, or to none, before it
// writes the first. Of packages that are on their way at the same time the older
// one wins, and one that has begun to write keeps what it has.
//
// Claims live in memory. What is written is in the cluster, in the owner
// references, and is decided by the plan; a claim only bridges the time until
// then.
type claims struct {
	mu      sync.Mutex
	objects map[plan.Ref]*claim
	claims  map[packageKey]*claim
}

// packageKey names a package.
type packageKey struct{ kind, name string }

func keyOf(p v1.Package) packageKey { return packageKey{p.PackageKind(), p.GetName()} }

// claim is that of one package.
type claim struct {
	all     *claims
	key     packageKey
	created metav1.Time
	refs    []plan.Ref
	// writes says that objects are being written, or were.
	writes bool
}

func newClaims() *claims {
	return &claims{objects: map[plan.Ref]*claim{}, claims: map[packageKey]*claim{}}
}

// of gives the claim of a package, which is empty at first.
func (c *claims) of(p v1.Package) *claim {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := keyOf(p)
	if c.claims[key] == nil {
		c.claims[key] = &claim{all: c, key: key, created: p.GetCreationTimestamp()}
	}
	return c.claims[key]
}

// release gives up everything that a package claims.
func (c *claims) release(key packageKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if old := c.claims[key]; old != nil {
		old.leave()
		delete(c.claims, key)
	}
}

// stake claims the objects instead of those that were claimed before. It fails,
// and changes nothing, when another package holds one of them.
func (k *claim) stake(refs []plan.Ref) error {
	k.all.mu.Lock()
	defer k.all.mu.Unlock()
	var rivals []*claim
	for _, ref := range refs {
		other := k.all.objects[ref]
		if other == nil || other == k {
			continue
		}
		if !k.beats(other) {
			return belongs(ref, other)
		}
		rivals = append(rivals, other)
	}
	for _, other := range rivals {
		other.leave()
	}
	k.leave()
	k.refs, k.all.claims[k.key] = refs, k
	for _, ref := range refs {
		k.all.objects[ref] = k
	}
	return nil
}

// beats reports whether k takes what other has claimed.
func (k *claim) beats(other *claim) bool {
	if other.writes {
		return false
	}
	return cmp.Or(k.created.Time.Compare(other.created.Time), cmp.Compare(k.key.name, other.key.name), cmp.Compare(k.key.kind, other.key.kind)) < 0
}

// hold makes the claim one that nobody can take any more, because its objects are
// written next. It fails when an older package has taken some of them meanwhile.
// A plan that is refused holds nothing; but what a package has written before stays its
// own while it is deleted and made again.
func (k *claim) hold(p plan.Plan) error {
	k.all.mu.Lock()
	defer k.all.mu.Unlock()
	for _, ref := range k.refs {
		if other := k.all.objects[ref]; other != k {
			return belongs(ref, other)
		}
	}
	if len(p.Refusals) > 0 {
		if k.writes && plan.OnlyDeleting(p.Refusals) {
			return nil
		}
		k.leave()
		k.writes = false
		return nil
	}
	k.writes = true
	return nil
}

// holders are those of some packages that have begun to write what they claim.
func (c *claims) holders(of map[packageKey]bool) plan.Holders {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := plan.Holders{}
	for ref, k := range c.objects {
		if k.writes && of[k.key] {
			out.Put(lower(k.key.kind)+"/"+k.key.name, ref)
		}
	}
	return out
}

// leave frees the objects that are still claimed. The lock is held.
func (k *claim) leave() {
	for _, ref := range k.refs {
		if k.all.objects[ref] == k {
			delete(k.all.objects, ref)
		}
	}
}

func belongs(ref plan.Ref, holder *claim) error {
	if holder == nil {
		return apply.ErrMoved.New(nil, "%s %s was claimed by another package", ref.Kind, ref.Name)
	}
	why := errors.New(ref.Kind + " " + ref.Name + " belongs to " + holder.key.kind + "/" + holder.key.name)
	return apply.ErrRefused.New(why, "objects of the package cannot be established")
}
