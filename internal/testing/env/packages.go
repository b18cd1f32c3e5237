package env

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/controller/packageapi"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

var packageAPI struct {
	sync.Once
	err error
}

// InstallPackageAPI installs the CRDs of the package API, for tests without a manager.
func (e *Env) InstallPackageAPI(t testing.TB) {
	t.Helper()
	packageAPI.Do(func() {
		c, err := apply.NewCluster(e.Config)
		if err == nil {
			_, err = packageapi.Install(context.Background(), c, packageapi.Options{})
		}
		packageAPI.err = err
	})
	if packageAPI.err != nil {
		t.Fatal(packageAPI.err)
	}
}

// NewPackage returns a package of a kind.
func NewPackage(kind, name, reference string) v1.Package {
	p := v1.NewPackage(kind)
	p.SetName(name)
	p.PackageSpec().Package = reference
	return p
}

// NewProvider returns a Provider.
func NewProvider(name, reference string) *v1.Provider {
	return NewPackage(v1.ProviderKind, name, reference).(*v1.Provider)
}

// Revisions returns the revisions of a package, by ascending number.
func (e *Env) Revisions(t testing.TB, p v1.Package) []v1.PackageRevision {
	t.Helper()
	list := p.NewRevisionList()
	if err := e.Client.List(t.Context(), list, client.MatchingLabels{v1.LabelPackage: p.GetName()}); err != nil {
		t.Fatal(err)
	}
	all := list.Revisions()
	slices.SortFunc(all, func(a, b v1.PackageRevision) int {
		return cmp.Or(
			cmp.Compare(a.RevisionSpec().Revision, b.RevisionSpec().Revision), cmp.Compare(a.GetName(), b.GetName()),
		)
	})
	return all
}

// WaitPackage reads a package until the condition holds.
func (e *Env) WaitPackage(t testing.TB, p v1.Package, state string, holds func() bool) {
	t.Helper()
	wait.Until(t, Limit, p.GetName()+" "+state, func() (string, bool) {
		if err := e.Client.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
			return err.Error(), false
		}
		return fmt.Sprintf("%+v", p.PackageStatus()), holds()
	})
}

// WaitReady waits until a package is ready with the content of its current spec.
func (e *Env) WaitReady(t testing.TB, p v1.Package) {
	t.Helper()
	e.WaitPackage(t, p, "is ready with "+p.PackageSpec().Package, func() bool { return IsReady(p) })
}

// IsReady reports whether a package is ready with the content of its current spec.
func IsReady(p v1.Package) bool {
	ready := p.GetCondition(v1.TypeReady)
	return ready.Status == corev1.ConditionTrue && ready.ObservedGeneration == p.GetGeneration() &&
		p.PackageStatus().CurrentIdentifier == p.PackageSpec().Package
}

// WaitCondition waits until a package has a condition, for its current generation, whose message contains a
// string.
func (e *Env) WaitCondition(
	t testing.TB, p v1.Package, condition v1.ConditionType, status corev1.ConditionStatus, message string,
) {
	t.Helper()
	e.WaitPackage(t, p, fmt.Sprintf("has %s=%s %s", condition, status, message), func() bool {
		got := p.GetCondition(condition)
		return got.Status == status && strings.Contains(got.Message, message) && got.ObservedGeneration == p.GetGeneration()
	})
}

// WaitHealthy waits until a package is healthy with its current spec.
func (e *Env) WaitHealthy(t testing.TB, p v1.Package) {
	t.Helper()
	e.WaitCondition(t, p, v1.TypeHealthy, corev1.ConditionTrue, "")
}
