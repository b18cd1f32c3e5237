package firstgen

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	packagesv1alpha1 "github.com/xpkg-dev/xpkg/apis/packages/v1alpha1"
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/controller/kube"
	"github.com/xpkg-dev/xpkg/internal/crossplane"
	"github.com/xpkg-dev/xpkg/internal/keyedmutex"
	"github.com/xpkg-dev/xpkg/internal/provide"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/state"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// Base has the values that the controllers share.
type Base struct {
	API      kube.API
	Packages state.Packages
	Options  Options
	// Namespace is the namespace of the manager.
	Namespace string
	// Sources returns the sources in which packages that provide kinds are found, in a state that is at most maxAge old.
	// It may be nil.
	Sources func(ctx context.Context, maxAge time.Duration) ([]provide.Source, error)
	// Kinds reads the kinds of the cluster, which count when a package is selected for another kind of their group.
	Kinds state.KindReader
	// Crossplane is the version of Crossplane that runs. It may be nil.
	Crossplane *crossplane.Checker
	// Choosing serializes the selection of packages for the kinds of an API group, so that several objects with the same
	// kind install one Provider. It may be nil if only one object is reconciled at a time.
	Choosing *keyedmutex.Mutex[string]
}

var available = revision.Summary{Ready: true, Reason: packagesv1alpha1.ReasonAvailable}

func creating(format string, args ...any) revision.Summary {
	return revision.Summary{Reason: packagesv1alpha1.ReasonCreating, Message: fmt.Sprintf(format, args...)}
}

func deleting(format string, args ...any) revision.Summary {
	return revision.Summary{Reason: packagesv1alpha1.ReasonDeleting, Message: fmt.Sprintf(format, args...)}
}

// failedConditions returns the conditions of an object whose reconciliation failed, in addition to the common ones.
func failedConditions(message string) []v1.Condition {
	return []v1.Condition{{Type: v1.TypeSynced, Status: corev1.ConditionFalse, Reason: "ReconcileError", Message: message}}
}

// summaryOf returns the summary of an object that depends on another one, from the condition Ready of the other one.
// Name is the name of the other object in messages.
func summaryOf(name string, o interface {
	v1.Conditioned
	metav1.Object
}, observed int64) revision.Summary {
	ready := o.GetCondition(v1.TypeReady)
	switch {
	case ready.Reason == v1.ReasonCustomResourcesExist:
		return deleting("%s: %s", name, ready.Message)
	case o.GetDeletionTimestamp() != nil:
		return deleting("%s is being deleted.", name)
	case observed < o.GetGeneration(), ready.Status == corev1.ConditionUnknown:
		return creating("%s is not reconciled yet.", name)
	case ready.Status == corev1.ConditionTrue:
		return available
	case o.GetCondition(v1.TypeReconciling).Status == corev1.ConditionTrue &&
		(ready.Reason == v1.ReasonProgressing || ready.Reason == packagesv1alpha1.ReasonCreating):
		return creating("%s: %s", name, ready.Message)
	}
	stalled, reconciling := o.GetCondition(v1.TypeStalled).Status == corev1.ConditionTrue,
		o.GetCondition(v1.TypeReconciling).Status == corev1.ConditionTrue
	return revision.Summary{Stalled: stalled, Waiting: !stalled &&
		!reconciling, Reason: ready.Reason, Message: name + ": " + ready.Message}
}

// content is the content of a Provider.
type content struct {
	pkg *xpkg.Package
	// revision is the active revision; nil for the content of a Provider that is not written yet.
	revision v1.PackageRevision
	origin   oci.Reference
	digest   oci.Digest
}

// readUnwritten returns the content of a Provider that is not written yet. A package is refused because of its content
// before anything of it is installed.
func (b *Base) readUnwritten(ctx context.Context, p *v1.Provider) (content, error) {
	r, err := b.Packages.Resolve(ctx, p, nil, state.ResolveOptions{MaxAge: refreshedAge})
	if err != nil {
		return content{}, err
	}
	pkg, err := b.Packages.Read(ctx, r.Origin, r.Digest, p.Spec.Package, p.Spec.PackagePullPolicy)
	return content{pkg: pkg, origin: r.Origin.Ref, digest: r.Digest}, err
}

// activeContent returns the content of the active revision of a Provider, and false if there is none.
func (b *Base) activeContent(ctx context.Context, p *v1.Provider) (content, bool, error) {
	revisions, err := state.RevisionsOf(ctx, b.API.Client, p)
	if err != nil {
		return content{}, false, err
	}
	i := slices.IndexFunc(revisions, revision.IsActive)
	if i < 0 {
		return content{}, false, nil
	}
	pkg, source, err := b.Packages.ReadRevision(ctx, revisions[i])
	return content{pkg, revisions[i], source.Origin.Ref, source.Digest}, true, err
}
