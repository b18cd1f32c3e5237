package consent_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/xpkg/v1alpha1"
	"github.com/xpkg-dev/xpkg/internal/fence"
	"github.com/xpkg-dev/xpkg/internal/permission"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/webhooks"
)

func transaction(packages ...v1alpha1.WantedPackage) *v1alpha1.Transaction {
	return &v1alpha1.Transaction{ObjectMeta: metav1.ObjectMeta{Name: "change"}, Spec: v1alpha1.TransactionSpec{
		Packages: packages,
	}}
}

func wanted(kind string, annotations map[string]string) v1alpha1.WantedPackage {
	out := v1alpha1.WantedPackage{PackageName: v1alpha1.PackageName{Kind: kind, Name: "boats"}, Annotations: annotations}
	out.Spec.Package = "registry.example.org/acme/boats:v1"
	return out
}

func removal(kinds ...string) *v1alpha1.Transaction {
	t := transaction()
	for _, kind := range kinds {
		t.Spec.Remove = append(t.Spec.Remove, v1alpha1.RemovedPackage{PackageName: v1alpha1.PackageName{
			Kind: kind, Name: "boats",
		}})
	}
	return t
}

// A consent in a Transaction needs the permission to update the revisions of the kind of the package.
func TestConsentsInTransactionsNeedThePermissionToUpdateRevisions(t *testing.T) {
	s := fenced(t)
	for name, tc := range map[string]struct {
		annotations map[string]string
		isDenied    bool
	}{
		"no annotations":    {nil, false},
		"other annotations": {map[string]string{"example.org/a": "b", "xpkg.dev/required-by": "x"}, false},
		"allowed webhooks":  {map[string]string{webhooks.AnnotationAllowed: "mutate * */*"}, true},
		"an adoption": {
			map[string]string{revision.AnnotationAdopt: "A/a", "example.org/a": "b"}, true,
		},
		"an approval": {map[string]string{permission.AnnotationApproved: "x"}, true},
		"consents are removed": {
			map[string]string{webhooks.AnnotationAllowed: "", revision.AnnotationAdopt: ""}, false,
		},
		"a source of images":                   {map[string]string{revision.AnnotationImageSource: "evil.example.org"}, true},
		"a source of images is removed":        {map[string]string{revision.AnnotationImageSource: ""}, true},
		"increases are approved":               {map[string]string{permission.AnnotationIncrease: "Approve"}, false},
		"increases are not approved":           {map[string]string{permission.AnnotationIncrease: "Allow"}, true},
		"the approval of increases is removed": {map[string]string{permission.AnnotationIncrease: ""}, true},
	} {
		for _, kind := range v1.PackageKinds() {
			create := func(user string) error {
				change := transaction(
					wanted(v1.FunctionKind, map[string]string{"example.org/a": "b"}), wanted(kind, tc.annotations),
				)
				return env.NewClient(t, env.AsUser(s.Config, user)).Create(t.Context(), change, client.DryRunAll)
			}
			err := create(tenant)
			switch {
			case !tc.isDenied && err != nil:
				t.Errorf("%s: %s: %v", kind, name, err)
			case tc.isDenied && (!isDenied(err) ||
				!strings.Contains(err.Error(), "permission to update "+strings.ToLower(kind)+"revisions.pkg.crossplane.io")):
				t.Errorf("%s: %s: %v, want a denial", kind, name, err)
			}
			if err := create(administrator); err != nil {
				t.Errorf("%s: %s by an administrator: %v", kind, name, err)
			}
		}
	}
}

// An identity that may not create, update and delete the packages of a kind can make no Transaction do it.
func TestTransactionsNeedThePermissionsForTheirPackages(t *testing.T) {
	s := fenced(t)
	for _, kind := range v1.PackageKinds() {
		resource := strings.ToLower(kind) + "s"
		for _, missing := range []string{"", "create", "update", "delete"} {
			verbs := map[string]bool{"create": true, "update": true, "delete": true}
			delete(verbs, missing)
			user := "may-not-" + missing + "-" + resource
			grant(t, s, user, rbacv1.PolicyRule{
				APIGroups: []string{v1.Group}, Resources: []string{resource}, Verbs: slices.Collect(maps.Keys(verbs)),
			})
			c := env.NewClient(t, env.AsUser(s.Config, user))
			for name, change := range map[string]*v1alpha1.Transaction{
				"a package": transaction(wanted(kind, nil)), "a removal": removal(kind),
			} {
				err := c.Create(t.Context(), change, client.DryRunAll)
				switch {
				case missing == "" && err != nil:
					t.Errorf("%s with %s: %v", user, name, err)
				case missing != "" &&
					(!isDenied(err) || !strings.Contains(err.Error(), "permission to "+missing+" "+resource+".pkg.crossplane.io")):
					t.Errorf("%s with %s: %v, want a denial", user, name, err)
				}
			}
			mixed := transaction(wanted(kind, nil))
			mixed.Spec.Remove = removal(v1.PackageKinds()...).Spec.Remove
			if err := c.Create(t.Context(), mixed, client.DryRunAll); !isDenied(err) {
				t.Errorf("%s with removals of all kinds: %v, want a denial", user, err)
			}
		}
	}
}

// The status has the former packages, to which the manager returns them, so a write of it needs all permissions for
// packages. A largest Transaction is within the limits of the API server for policies.
func TestStatusOfTransactionsNeedsThePermissionsOfTheManager(t *testing.T) {
	s := fenced(t)
	annotations := map[string]string{webhooks.AnnotationAllowed: "mutate * */*"}
	change := transaction()
	for range 200 / len(v1.PackageKinds()) {
		for _, kind := range v1.PackageKinds() {
			change.Spec.Packages = append(change.Spec.Packages, wanted(kind, annotations))
			change.Spec.Remove = append(change.Spec.Remove, removal(kind).Spec.Remove...)
		}
	}
	if err := env.NewClient(t, env.AsUser(s.Config, administrator)).Create(t.Context(), change); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.CleanUp(t, change) })
	grant(t, s, "reporter")
	report := change.DeepCopy()
	report.Status.Phase = v1alpha1.Returning
	for user, wantsDenial := range map[string]bool{"reporter": true, tenant: true, administrator: false} {
		err := env.NewClient(t, env.AsUser(s.Config, user)).Status().
			Patch(t.Context(), report.DeepCopy(), client.MergeFrom(change), client.DryRunAll)
		if isDenied(err) != wantsDenial || !wantsDenial && err != nil {
			t.Errorf("a status by %s: %v", user, err)
		}
	}
	// Other writes are free: the spec does not change.
	labeled := change.DeepCopy()
	labeled.Labels = map[string]string{"example.org/a": "b"}
	if err := env.NewClient(t, env.AsUser(s.Config, "reporter")).
		Patch(t.Context(), labeled, client.MergeFrom(change), client.DryRunAll); err != nil {
		t.Errorf("a label: %v", err)
	}
}

// The history names the user who has created a transaction, so the annotation cannot name another one.
func TestTransactionsNameNobodyElse(t *testing.T) {
	s := fenced(t)
	named := func(user string) *v1alpha1.Transaction {
		change := transaction(wanted(v1.ProviderKind, nil))
		if user != "" {
			change.Annotations = map[string]string{fence.AnnotationUser: user}
		}
		return change
	}
	c := env.NewClient(t, env.AsUser(s.Config, administrator))
	for user, wantsDenial := range map[string]bool{"": false, administrator: false, "jane": true} {
		if err := c.Create(t.Context(), named(user), client.DryRunAll); isDenied(err) != wantsDenial || !wantsDenial && err != nil {
			t.Errorf("a transaction of %q: %v", user, err)
		}
	}
	change := named(administrator)
	if err := c.Create(t.Context(), change); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.CleanUp(t, change) })
	grant(t, s, "editor")
	for annotations, wantsDenial := range map[string]bool{
		`{"xpkg.dev/user":"jane"}`: true, `{"xpkg.dev/user":"editor","a/b":"c"}`: true, `{"a/b":"c"}`: false,
	} {
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":`+annotations+`}}`))
		err := env.NewClient(t, env.AsUser(s.Config, "editor")).Patch(t.Context(), change.DeepCopy(), patch, client.DryRunAll)
		if isDenied(err) != wantsDenial || !wantsDenial && err != nil {
			t.Errorf("the annotations %s: %v", annotations, err)
		}
	}
}

// grant gives a user all permissions for Transactions, and those of the rules, until the test ends.
func grant(t *testing.T, s *env.Env, user string, rules ...rbacv1.PolicyRule) {
	t.Helper()
	rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{v1alpha1.Group}, Verbs: []string{"*"}, Resources: []string{
		"*",
	}})
	env.Grant(t, s.Client, env.User(user), rules...)
}
