package apply

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// Attempt is a planned write.
type Attempt struct {
	Ref plan.Ref
	// Subresource is the part of the object that is written, or empty for the object itself.
	Subresource string
	// Desired identifies the state of the object after the write, without the parts that other clients own.
	Desired string
	// Base is the resourceVersion that the write replaces. It is empty for an object that does not exist.
	Base string
}

// Deleted is the desired state of an object that is deleted.
const Deleted = "deleted"

// Brake limits writes.
type Brake interface {
	// Begin fails if the write must not be made. Otherwise end is called with the resourceVersion that the write
	// returned, which is empty after a deletion, or with its error.
	Begin(ctx context.Context, a Attempt) (end func(resourceVersion string, err error), err error)
}

// WithBrake returns a cluster that consults b before each write. Dry runs are always allowed.
func (c *Cluster) WithBrake(b Brake) *Cluster {
	limited := *c
	limited.brake = b
	return &limited
}

// begin begins a write; see [Brake].
func (c *Cluster) begin(ctx context.Context, a Attempt) (end func(resourceVersion string, err error), err error) {
	if c.brake == nil || c.dryRun {
		return func(string, error) {}, nil
	}
	return c.brake.Begin(ctx, a)
}

// desiredState identifies the state that a change establishes: the content, and the metadata that the manager owns.
func desiredState(ch plan.Change) string {
	raw, err := json.Marshal(struct {
		MetadataOnly   bool
		Content, Trust string
		Owners         []metav1.OwnerReference
	}{ch.MetadataOnly, ch.Annotations[plan.ContentDigestAnnotation], ch.Annotations[plan.CABundleHashAnnotation],
		ch.Owners})
	if err != nil {
		panic(err) // Strings always encode.
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}
