package manifests

import (
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xpkg-dev/xpkg/apis/pkg/v1alpha1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// accountConfig returns a configuration with a name that names a ServiceAccount, unless that is empty.
func accountConfig(name, account string) *v1beta1.DeploymentRuntimeConfig {
	c := &v1beta1.DeploymentRuntimeConfig{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if account != "" {
		c.Spec.ServiceAccountTemplate = &v1beta1.ServiceAccountTemplate{Metadata: &v1beta1.ObjectMeta{Name: &account}}
	}
	return c
}

func objectsOf(t *testing.T, pkg string, config *v1beta1.DeploymentRuntimeConfig) Objects {
	t.Helper()
	in := provider()
	in.Owner, in.Config = owner("Provider", pkg), config
	return build(t, in)
}

// step does to a ServiceAccount, or to nil, what a manager without privileges does for a runtime.
func step(o Objects, live *corev1.ServiceAccount) *corev1.ServiceAccount {
	if live == nil {
		live = o.ServiceAccount.DeepCopy()
		metav1.SetMetaDataAnnotation(&live.ObjectMeta, plan.ContentDigestAnnotation, "x")
		return live
	}
	use, _ := o.ClaimAccount(live)
	live = live.DeepCopy()
	switch use {
	case AccountOwn:
		live.OwnerReferences = Hold(live.OwnerReferences, o.Owner, o.ServiceAccount.OwnerReferences)
		delete(live.Annotations, ConfigAnnotation)
		maps.Copy(live.Annotations, o.ServiceAccount.Annotations)
	case AccountShared:
		live.OwnerReferences = Join(live.OwnerReferences, o.Owner)
	}
	return live
}

// A ServiceAccount of another package can be used only by a package whose ServiceAccount the same configuration names.
func TestClaimAccount(t *testing.T) {
	unnamed, shared := accountConfig("default", ""), accountConfig("family", "cloud")
	old := FromControllerConfig(&v1alpha1.ControllerConfig{
		ObjectMeta: metav1.ObjectMeta{Name: "family"}, Spec: v1alpha1.ControllerConfigSpec{ServiceAccountName: new("cloud")},
	})
	of := func(
		pkg string, config *v1beta1.DeploymentRuntimeConfig, change ...func(*corev1.ServiceAccount),
	) *corev1.ServiceAccount {
		live := step(objectsOf(t, pkg, config), nil)
		for _, c := range change {
			c(live)
		}
		return live
	}
	orphan := func(a *corev1.ServiceAccount) { a.OwnerReferences = nil }
	unmarked := func(a *corev1.ServiceAccount) { delete(a.Annotations, ConfigAnnotation) }
	joined := func(a *corev1.ServiceAccount) {
		a.OwnerReferences = append(a.OwnerReferences, owner("Provider", "evil").Package.Reference(false))
	}
	between := func(a *corev1.ServiceAccount) { a.OwnerReferences = a.OwnerReferences[1:] }
	claims := func(a *corev1.ServiceAccount) {
		metav1.SetMetaDataAnnotation(&a.ObjectMeta, ConfigAnnotation, "DeploymentRuntimeConfig/steal")
	}
	victim := of("aws", unnamed)
	cases := map[string]struct {
		live   *corev1.ServiceAccount
		config *v1beta1.DeploymentRuntimeConfig
		want   AccountUse
		holder string
	}{
		"its own":                             {of("evil", unnamed), unnamed, AccountOwn, ""},
		"its own, without owners":             {of("evil", unnamed, orphan), unnamed, AccountOwn, ""},
		"its own, named":                      {of("evil", shared), shared, AccountOwn, ""},
		"its own, with another configuration": {of("evil", shared), accountConfig("other", "cloud"), AccountOwn, ""},
		"of a user":                           {&corev1.ServiceAccount{}, shared, AccountForeign, ""},
		"of a revision of another package": {
			victim, accountConfig("steal", victim.Name), AccountForeign, "ProviderRevision/aws-0123456789ab",
		},
		"the same, once an owner of it": {
			of("aws", unnamed, joined), accountConfig("steal", victim.Name), AccountForeign, "ProviderRevision/aws-0123456789ab",
		},
		"the same, with a false annotation": {
			of("aws", accountConfig("x", ""), claims), accountConfig("other", victim.Name), AccountForeign,
			"ProviderRevision/aws-0123456789ab",
		},
		"the same, named in the pod": {
			victim, podConfig(corev1.PodSpec{ServiceAccountName: victim.Name}), AccountForeign,
			"ProviderRevision/aws-0123456789ab",
		},
		"left behind by another package": {
			of("aws", unnamed, orphan), accountConfig("steal", victim.Name), AccountForeign, "",
		},
		"named by another configuration": {
			of("aws", shared), accountConfig("steal", "cloud"), AccountForeign, "ProviderRevision/aws-0123456789ab",
		},
		"named by a ControllerConfig": {of("aws", old), shared, AccountForeign, "ProviderRevision/aws-0123456789ab"},
		"named by another, between revisions": {
			of("aws", shared, between), accountConfig("steal", "cloud"), AccountForeign, "Provider/aws",
		},
		"named by the same configuration": {
			of("aws", shared), shared, AccountShared, "ProviderRevision/aws-0123456789ab",
		},
		"named by the same ControllerConfig":   {of("aws", old), old, AccountShared, "ProviderRevision/aws-0123456789ab"},
		"named by the same, without owners":    {of("aws", shared, orphan), shared, AccountOwn, ""},
		"named by the same, between revisions": {of("aws", shared, between), shared, AccountOwn, ""},
		"shared before the annotation existed": {
			of("aws", shared, unmarked, joined), shared, AccountShared, "ProviderRevision/aws-0123456789ab",
		},
		"of another, before the annotation": {
			of("aws", shared, unmarked), shared, AccountForeign, "ProviderRevision/aws-0123456789ab",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := objectsOf(t, "evil", tc.config)
			use, ref := o.ClaimAccount(tc.live)
			holder := ""
			if ref != nil {
				holder = ref.Kind + "/" + ref.Name
			}
			if use != tc.want || holder != tc.holder {
				t.Errorf("use %d of %q, want %d of %q", use, holder, tc.want, tc.holder)
			}
			if use != AccountForeign {
				return
			}
			if err := o.CheckForeignAccount(ref, nil); !errors.Is(err, ErrPrivileges) || !strings.Contains(err.Error(), holder) {
				t.Errorf("the refusal does not name %s: %v", holder, err)
			}
			if err := o.CheckForeignAccount(ref, []Privilege{ServiceAccount}); err != nil {
				t.Error(err)
			}
		})
	}
}

// A package without a name for its ServiceAccount cannot let others share it.
func TestOnlyNamedAccountsHaveAConfiguration(t *testing.T) {
	config := accountConfig("aws", "")
	config.Spec.ServiceAccountTemplate = &v1beta1.ServiceAccountTemplate{Metadata: &v1beta1.ObjectMeta{
		Annotations: map[string]string{ConfigAnnotation: "DeploymentRuntimeConfig/steal"},
	}}
	if got := objectsOf(t, "aws", config).ServiceAccount.Annotations; len(got) > 0 {
		t.Errorf("annotations %v", got)
	}
}

// Two packages that share a ServiceAccount converge, in either order of reconciliation.
func TestSharedOwnersConverge(t *testing.T) {
	config := accountConfig("family", "cloud")
	a, b := objectsOf(t, "aws", config), objectsOf(t, "gcp", config)
	rest := step(b, step(a, nil))
	for range 3 {
		for _, o := range []Objects{a, b} {
			if next := step(o, rest); !EqualOwners(rest.OwnerReferences, next.OwnerReferences) {
				t.Fatalf("%s changes the owners:\n%s", o.Owner.Package.Name, cmp.Diff(rest, next))
			}
		}
	}
	if n := len(rest.OwnerReferences); n != 3 {
		t.Errorf("%d owners, want two packages and a revision", n)
	}
}

// In no order of events does a package replace the revision of another package that exists as the controller of a
// ServiceAccount, or get the ServiceAccount that only another package's configuration names.
func TestNoPackageTakesTheAccountOfAnother(t *testing.T) {
	names := []string{"aws", "gcp", "evil"}
	victim := objectsOf(t, "aws", nil).ServiceAccountName
	for seed := range uint64(500) {
		random := rand.New(rand.NewPCG(seed, 1))
		config := func(pkg string) *v1beta1.DeploymentRuntimeConfig {
			if pkg == "evil" {
				return accountConfig("steal", []string{"cloud", victim}[random.IntN(2)])
			}
			return []*v1beta1.DeploymentRuntimeConfig{
				nil, accountConfig("family", "cloud"), accountConfig("family", victim),
			}[random.IntN(3)]
		}
		var live *corev1.ServiceAccount
		exists := map[string]bool{"aws": true, "gcp": true, "evil": true}
		for range 30 {
			pkg := names[random.IntN(len(names))]
			if random.IntN(5) == 0 {
				exists[pkg] = !exists[pkg]
				live = collected(live, pkg)
				continue
			}
			o := objectsOf(t, pkg, config(pkg))
			if !exists[pkg] || live != nil && live.Name != o.ServiceAccountName {
				continue
			}
			next := step(o, live)
			if was := controllerOf(live); was != "" && was != pkg && exists[was] && controllerOf(next) != was {
				t.Fatalf("seed %d: %s replaces %s as the controller: %v", seed, pkg, was, live.OwnerReferences)
			}
			if pkg == "evil" && controllerOf(live) != "" && controllerOf(live) != pkg && !cmp.Equal(live, next) {
				t.Fatalf("seed %d: changed a ServiceAccount of %s:\n%s", seed, controllerOf(live), cmp.Diff(live, next))
			}
			live = next
		}
	}
}

// controllerOf returns the package whose revision controls a ServiceAccount, or "".
func controllerOf(a *corev1.ServiceAccount) string {
	if a == nil || metav1.GetControllerOf(a) == nil {
		return ""
	}
	name, _, _ := strings.Cut(metav1.GetControllerOf(a).Name, "-")
	return name
}

// collected returns a ServiceAccount after the garbage collector has removed a package and its revisions from its
// owners, or nil if no owner is left.
func collected(a *corev1.ServiceAccount, pkg string) *corev1.ServiceAccount {
	if a == nil {
		return nil
	}
	a = a.DeepCopy()
	a.OwnerReferences = slices.DeleteFunc(a.OwnerReferences, func(r metav1.OwnerReference) bool {
		return r.Name == pkg || strings.HasPrefix(r.Name, pkg+"-")
	})
	if len(a.OwnerReferences) == 0 {
		return nil
	}
	return a
}
