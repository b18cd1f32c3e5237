package operation

import (
	"context"
	"errors"
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/xpkg/v1alpha1"
	"github.com/xpkg-dev/xpkg/internal/apiserver"
	"github.com/xpkg-dev/xpkg/internal/changepolicy"
	"github.com/xpkg-dev/xpkg/internal/inventory"
	"github.com/xpkg-dev/xpkg/internal/planner"
	"github.com/xpkg-dev/xpkg/pkg/crddiff"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// ReadPolicy returns the ChangePolicy of a cluster, or nil if there is none.
func ReadPolicy(ctx context.Context, reader client.Reader) (*v1alpha1.ChangePolicy, error) {
	p := &v1alpha1.ChangePolicy{}
	switch err := reader.Get(ctx, client.ObjectKey{Name: v1alpha1.ChangePolicyName}, p); {
	case apierrors.IsNotFound(err), apimeta.IsNoMatchError(err):
		return nil, nil
	case err != nil:
		return nil, apiserver.Classify(err, "read the ChangePolicy")
	}
	return p, nil
}

// FactsOf returns the facts of planned steps on which approvals depend.
func FactsOf(steps []*Step) changepolicy.Facts {
	var out changepolicy.Facts
	objects := map[string]int64{} // by CRD
	for _, s := range steps {
		p := s.Plan
		if p == nil {
			continue
		}
		out.Removal = out.Removal || s.Remove
		out.Breaking = out.Breaking || len(p.Breaks)+len(p.Accepts) > 0
		out.Permissions = out.Permissions || p.Webhooks != nil && len(p.Webhooks.Outside) > 0
		for _, r := range p.CustomResources {
			count(objects, r.CRD, r.Count, r.Unknown)
		}
		addFacts(&out, objects, p.Objects, p.Permissions, p.KindChanges)
		for _, a := range p.AddedPackages {
			addFacts(&out, objects, a.Objects, a.Permissions, a.KindChanges)
		}
	}
	for _, n := range objects {
		if out.Objects += n; out.Objects < 0 {
			out.Objects = math.MaxInt64
		}
	}
	return out
}

// addFacts adds the facts of one package.
func addFacts(
	out *changepolicy.Facts, objects map[string]int64, p plan.Plan, permissions *planner.Permissions,
	kinds []crddiff.ChangedCRD,
) {
	out.Permissions = out.Permissions || permissions != nil && len(permissions.Added) > 0
	for _, k := range kinds {
		out.Breaking = out.Breaking || crddiff.Max(k.Changes) == crddiff.Breaking
	}
	for _, j := range p.Judgements {
		out.Breaking = out.Breaking || j.Broken+j.Accepted > 0 || j.Unknown != ""
		count(objects, j.CRD, int64(j.Objects), j.Unknown)
	}
	for _, c := range p.Changes {
		out.Removal = out.Removal || c.Action == plan.Delete
		for _, m := range c.Migrations {
			count(objects, m.CRD, int64(m.Objects), "")
		}
	}
}

// count records the number of custom resources of a CRD. If it is unknown, it is above every limit.
func count(objects map[string]int64, crd string, n int64, unknown string) {
	if unknown != "" {
		n = math.MaxInt64
	}
	objects[crd] = max(objects[crd], n)
}

// CheckStillHealthy fails if a package is not healthy, or was not at a moment since a time.
func CheckStillHealthy(ctx context.Context, cluster client.Client, n v1alpha1.PackageName, since time.Time) error {
	p, err := inventory.Get(ctx, cluster, n.Kind, n.Name)
	if err != nil {
		return err
	}
	if p == nil || inventory.IsDeleting(p) {
		return ErrNotStable.New(nil, "%s was deleted while the ChangePolicy watched it", v1.ObjectName(n.Kind, n.Name))
	}
	name := inventory.ShortName(p)
	is := p.GetCondition(v1.TypeHealthy)
	if is.Status == corev1.ConditionTrue && is.LastTransitionTime.Time.After(since) {
		return ErrNotStable.New(nil, "%s was not healthy until %s", name, is.LastTransitionTime.UTC().Format(time.TimeOnly))
	}
	if is.Status == corev1.ConditionTrue && is.ObservedGeneration != p.GetGeneration() {
		return nil // The manager has not looked at it again.
	}
	health, err := checkHealth(ctx, cluster, p)
	switch {
	case errors.Is(err, apiserver.ErrCluster):
		return err
	case err != nil:
		return ErrNotStable.New(err, "%s did not stay healthy", name)
	case !health.ready && health.of == p && is.Status == corev1.ConditionTrue:
		return nil // It has been asked to try again, or its dependencies are not written yet.
	case !health.ready:
		return ErrNotStable.New(errors.New(health.message), "%s did not stay healthy", name)
	}
	return nil
}

// Stable returns the packages of a record that must stay healthy: without those that are removed, or that were not
// healthy before and do not change.
func Stable(record []v1alpha1.ChangedPackage) []v1alpha1.PackageName {
	var out []v1alpha1.PackageName
	for _, r := range record {
		if r.Package != "" && (r.Result == resultHealthy || r.Result == resultInactive) {
			out = append(out, r.PackageName)
		}
	}
	return out
}

// ask adds to the plans of steps what the ChangePolicy asks of them. A policy that cannot be read is not shown.
func (o Operation) ask(ctx context.Context, steps []*Step) {
	p, err := ReadPolicy(ctx, o.Client)
	if err != nil || p == nil {
		return
	}
	asked := &changepolicy.Asked{}
	open, next, why, err := changepolicy.Opens(p.Spec, time.Now())
	switch {
	case err != nil:
		asked.Closed = "the ChangePolicy is not valid: " + err.Error()
	case !open:
		asked.Closed = why
		if !next.IsZero() {
			asked.OpensAt = &next
		}
	}
	asked.People, asked.Reasons = changepolicy.Needs(p.Spec, FactsOf(steps))
	if p.Spec.Watch != nil && p.Spec.Watch.Duration > 0 {
		asked.Watch = p.Spec.Watch.Duration.String()
	}
	if asked.IsZero() {
		return
	}
	for _, s := range steps {
		if s.Plan != nil && s.Plan.WritesPackage() {
			s.Plan.Policy = asked
		}
	}
}
