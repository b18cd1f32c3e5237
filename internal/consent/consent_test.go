package consent_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/xpkg/v1alpha1"
	"github.com/xpkg-dev/xpkg/internal/consent"
	"github.com/xpkg-dev/xpkg/internal/fence"
	"github.com/xpkg-dev/xpkg/internal/permission"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
	"github.com/xpkg-dev/xpkg/internal/webhooks"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// tenant may write packages, and create revisions; administrator may update revisions, too.
const (
	tenant        = "tenant"
	administrator = "administrator"
)

// fenced is an API server with the package API and the fences of consents.
func fenced(t *testing.T) *env.Env {
	t.Helper()
	log.SetLogger(logr.Discard())
	s := env.New(t)
	s.InstallPackageAPI(t)
	for user, verbs := range map[string][]string{tenant: {"create", "patch"}, administrator: {
		"create", "patch", "update",
	}} {
		env.Grant(t, s.Client, env.User(user), []rbacv1.PolicyRule{
			{APIGroups: []string{v1.Group}, Verbs: []string{"*"}, Resources: []string{
				"providers", "configurations", "functions", "providers/status", "configurations/status", "functions/status",
			}},
			{APIGroups: []string{v1.Group}, Verbs: verbs, Resources: []string{
				"providerrevisions", "configurationrevisions", "functionrevisions",
			}},
			{APIGroups: []string{v1alpha1.Group}, Verbs: []string{"*"}, Resources: []string{"*"}},
		}...)
	}
	for _, f := range consent.Fences() {
		policy, binding := f.Objects()
		s.CreateTemporary(t, policy, binding)
	}
	c := env.NewClient(t, env.AsUser(s.Config, tenant))
	consents := map[string]string{webhooks.AnnotationAllowed: "mutate * */*"}
	for _, probe := range []client.Object{
		annotatedPackage(v1.ProviderKind, "probe", consents), transaction(wanted(v1.ProviderKind, consents)),
	} {
		wait.Until(t, env.Limit, fmt.Sprintf("the fence for %T is in effect", probe), func() (string, bool) {
			err := c.Create(t.Context(), probe.DeepCopyObject().(client.Object), client.DryRunAll)
			return fmt.Sprint(err), isDenied(err)
		})
	}
	return s
}

func annotatedPackage(kind, name string, annotations map[string]string) v1.Package {
	p := env.NewPackage(kind, name, "registry.example.org/acme/boats:v1")
	p.SetAnnotations(annotations)
	return p
}

func isDenied(err error) bool {
	return apierrors.IsForbidden(err) &&
		(strings.Contains(err.Error(), fence.ConsentsName) || strings.Contains(err.Error(), fence.TransactionsName))
}

// A consent needs the permission to update revisions, for every kind of package. Removing one does not.
func TestConsentsNeedThePermissionToUpdateRevisions(t *testing.T) {
	s := fenced(t)
	const allowed, adopt, other = webhooks.AnnotationAllowed, revision.AnnotationAdopt, "example.org/other"
	const source = revision.AnnotationImageSource
	type annotations map[string]string
	for name, tc := range map[string]struct {
		// Old is nil for a creation.
		old, now annotations
		// Image is the reference of the changed package.
		image string
		// Wants is a part of the denial.
		wants string
	}{
		"a package without annotations": {nil, nil, "", ""},
		"another annotation":            {nil, annotations{other: "x"}, "", ""},
		"a new package with allowed webhooks": {
			nil, annotations{allowed: "mutate * */*"}, "", "annotation xpkg.dev/allowed-webhooks",
		},
		"a new package that adopts": {
			nil, annotations{adopt: "CustomResourceDefinition/a"}, "", "annotation xpkg.dev/adopt",
		},
		"allowed webhooks are added": {
			annotations{}, annotations{allowed: "mutate * */*"}, "", "annotation xpkg.dev/allowed-webhooks",
		},
		"an adoption is added": {
			annotations{other: "x"}, annotations{adopt: "A/a"}, "", "annotation xpkg.dev/adopt",
		},
		"webhooks are extended": {
			annotations{allowed: "mutate * a/b"}, annotations{allowed: "mutate * a/b; mutate * a/c"}, "",
			"annotation xpkg.dev/allowed-webhooks",
		},
		"webhooks are changed": {
			annotations{allowed: "mutate * a/b"}, annotations{allowed: "mutate * a/*"}, "",
			"annotation xpkg.dev/allowed-webhooks",
		},
		"adoptions are extended": {
			annotations{adopt: "A/a"}, annotations{adopt: "A/a,B/b"}, "", "annotation xpkg.dev/adopt",
		},
		"a consent is removed": {
			annotations{allowed: "mutate * a/b", adopt: "A/a"}, annotations{adopt: "A/a"}, "", "",
		},
		"webhooks are narrowed": {
			annotations{allowed: "mutate * a/b; mutate * a/c"}, annotations{allowed: " mutate * a/c"}, "", "",
		},
		"adoptions are narrowed":  {annotations{adopt: "A/a,B/b"}, annotations{adopt: "B/b"}, "", ""},
		"a consent becomes empty": {annotations{adopt: "A/a,B/b"}, annotations{adopt: ""}, "", ""},
		"another version": {
			annotations{allowed: "mutate * a/b"}, annotations{allowed: "mutate * a/b"}, "registry.example.org/acme/boats:v2", "",
		},
		"another repository": {
			annotations{allowed: "mutate * a/b"}, annotations{allowed: "mutate * a/b"}, "registry.example.org/evil/boats:v1",
			"given for its repository",
		},
		"another registry": {
			annotations{adopt: "A/a"}, annotations{adopt: "A/a"}, "registry.example.net/acme/boats:v1",
			"given for its repository",
		},
		"another repository without a consent": {
			annotations{other: "x"}, annotations{other: "x"}, "registry.example.org/evil/boats:v1", "",
		},
		"a consent is removed with the change": {
			annotations{adopt: "A/a"}, annotations{other: "x"}, "registry.example.org/evil/boats:v1", "",
		},
		"a source of images": {
			annotations{other: "x"}, annotations{source: "evil.example.org"}, "", "annotation xpkg.dev/image-source",
		},
		"a new package with a source of images": {
			nil, annotations{source: "evil.example.org"}, "", "annotation xpkg.dev/image-source",
		},
		"another source of images": {
			annotations{source: "example.org"}, annotations{source: "evil.example.org"}, "", "annotation xpkg.dev/image-source",
		},
		"the source of images is removed": {
			annotations{source: "example.org"}, annotations{other: "x"}, "", "annotation xpkg.dev/image-source",
		},
		"the source of images stays": {
			annotations{source: "example.org"}, annotations{source: "example.org", other: "x"}, "", "",
		},
		"increases are approved": {
			annotations{}, annotations{permission.AnnotationIncrease: "Approve"}, "", "",
		},
		"increases are not approved any more": {
			annotations{permission.AnnotationIncrease: "Approve"}, annotations{other: "x"}, "",
			"annotation xpkg.dev/permission-increase",
		},
		"the approval of increases has a typo": {
			annotations{permission.AnnotationIncrease: "Approve"}, annotations{permission.AnnotationIncrease: "approve"}, "",
			"annotation xpkg.dev/permission-increase",
		},
		"harmless settings of xpkg are changed": {
			annotations{}, annotations{"xpkg.dev/rolled-back-from": "x", "xpkg.dev/required-by": "y", "xpkg.dev/provides": "z"},
			"", "",
		},
	} {
		for _, kind := range v1.PackageKinds() {
			change := func(c client.Client) error {
				p := annotatedPackage(kind, "boats", tc.now)
				if tc.image != "" {
					p.PackageSpec().Package = tc.image
				}
				if tc.old == nil {
					return c.Create(t.Context(), p, client.DryRunAll)
				}
				live := v1.NewPackage(kind)
				if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(p), live); err != nil {
					return err
				}
				p.SetResourceVersion(live.GetResourceVersion())
				return c.Update(t.Context(), p, client.DryRunAll)
			}
			if tc.old != nil {
				s.Create(t, annotatedPackage(kind, "boats", tc.old))
			}
			err := change(env.NewClient(t, env.AsUser(s.Config, tenant)))
			switch {
			case tc.wants == "" && err != nil:
				t.Errorf("%s: %s: %v", kind, name, err)
			case tc.wants != "" && (!isDenied(err) || !strings.Contains(err.Error(), tc.wants) ||
				!strings.Contains(err.Error(), "permission to update "+strings.ToLower(kind)+"revisions.pkg.crossplane.io")):
				t.Errorf("%s: %s: %v, want a denial with %q", kind, name, err, tc.wants)
			}
			if err := change(env.NewClient(t, env.AsUser(s.Config, administrator))); err != nil {
				t.Errorf("%s: %s by an administrator: %v", kind, name, err)
			}
			if tc.old != nil {
				s.Delete(t, annotatedPackage(kind, "boats", nil))
			}
		}
	}
}

// No other request gives a consent: neither a write of the status, nor a server-side apply, nor a new revision.
func TestConsentsCannotBeGivenInOtherWays(t *testing.T) {
	s := fenced(t)
	c := env.NewClient(t, env.AsUser(s.Config, tenant))
	s.CreateTemporary(t, annotatedPackage(v1.ProviderKind, "boats", nil))
	consents := fmt.Sprintf(`{"metadata":{"annotations":{%q:"mutate * */*"}}`, webhooks.AnnotationAllowed)
	p := v1.NewPackage(v1.ProviderKind)
	p.SetName("boats")
	if err := c.Status().Patch(
		t.Context(), p, client.RawPatch(types.MergePatchType, []byte(consents+`,"status":{"currentRevision":"x"}}`)),
	); err != nil {
		t.Errorf("a patch of the status: %v", err)
	}
	live := v1.NewPackage(v1.ProviderKind)
	if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(p), live); err != nil ||
		live.GetAnnotations()[webhooks.AnnotationAllowed] != "" {
		t.Errorf("the status has annotations: %v (%v)", live.GetAnnotations(), err)
	}
	for name, patch := range map[string]client.Patch{
		"a merge patch": client.RawPatch(types.MergePatchType, []byte(consents+"}")),
		"a JSON patch": client.RawPatch(types.JSONPatchType,
			[]byte(`[{"op":"add","path":"/metadata/annotations","value":{"xpkg.dev/allowed-webhooks":"mutate * */*"}}]`)),
		"an apply": client.RawPatch(types.ApplyPatchType,
			[]byte(
				`{"apiVersion":"pkg.crossplane.io/v1","kind":"Provider","metadata":{"name":"boats","annotations":{"xpkg.dev/allowed-webhooks":"mutate * */*"}}}`,
			)),
	} {
		opts := []client.PatchOption{client.FieldOwner("test")}
		if err := c.Patch(t.Context(), p, patch, opts...); !isDenied(err) {
			t.Errorf("%s: %v, want a denial", name, err)
		}
	}
	for _, kind := range v1.PackageKinds() {
		for _, key := range []string{webhooks.AnnotationAllowed, revision.AnnotationAdopt, permission.AnnotationApproved} {
			rev := v1.NewPackage(kind).NewRevision()
			rev.SetName("boats-1")
			rev.RevisionSpec().Image, rev.RevisionSpec().DesiredState = "registry.example.org/acme/boats:v1", v1.RevisionActive
			if err := c.Create(t.Context(), rev.DeepCopyObject().(client.Object), client.DryRunAll); err != nil {
				t.Errorf("a %s revision without consents: %v", kind, err)
			}
			rev.SetAnnotations(map[string]string{key: "x"})
			if err := c.Create(t.Context(), rev, client.DryRunAll); !isDenied(err) {
				t.Errorf("a %s revision with %s: %v, want a denial", kind, key, err)
			}
		}
	}
}

// The fence distinguishes all repositories that the parser of references distinguishes.
func TestFenceKnowsTheRepositoriesOfReferences(t *testing.T) {
	s := fenced(t)
	c := env.NewClient(t, env.AsUser(s.Config, tenant))
	digest := "@sha256:" + strings.Repeat("a", 64)
	references := []string{
		"registry.example.org/acme/boats:v1", "registry.example.org/acme/boats:v2",
		"registry.example.org/acme/boats" + digest,
		"registry.example.org/acme/boats:v1" + digest, "registry.example.org:443/acme/boats:v1",
		"registry.example.org:5000/acme/boats:v1",
		"localhost:5000/boats:v1", "localhost/boats:v1", "localhost/5000/boats:v1", "registry.example.org/acme/boats/v1:v1",
		"registry.example.org/acme:v1",
		"docker.io/acme/boats:v1", "index.docker.io/acme/boats:v1", "REGISTRY.example.org/acme/boats:v1",
		"boats:v1", "boats:v2", "acme/boats:v1", "acme/boats:v2", "boats", "registry.example.org/acme/boats:v1 ",
	}
	for _, from := range references {
		p := annotatedPackage(v1.ProviderKind, "boats", map[string]string{revision.AnnotationAdopt: "A/a"})
		p.PackageSpec().Package, p.PackageSpec().PackagePullPolicy = from, corev1.PullNever
		s.Create(t, p)
		for _, to := range references {
			changed := p.DeepCopyObject().(v1.Package)
			changed.PackageSpec().Package = to
			err := c.Update(t.Context(), changed, client.DryRunAll)
			if err != nil && !isDenied(err) {
				t.Fatal(err)
			}
			switch same := oci.RepositoryName(from) == oci.RepositoryName(to); {
			case err == nil && !same:
				t.Errorf("%q and %q are the same repository for the fence", from, to)
			case err != nil && same && !isSpelled(from, to):
				t.Errorf("%q and %q are different repositories for the fence", from, to)
			}
		}
		s.Delete(t, p)
	}
}

// isSpelled reports whether the registry of one of the references has more than one spelling. The fence denies a change
// of the spelling.
func isSpelled(references ...string) bool {
	all := strings.Join(references, " ")
	return strings.Contains(all, "docker.io") || strings.Contains(all, "REGISTRY")
}

// The reason why consents do not count names the remedy.
func TestCheckNamesTheGap(t *testing.T) {
	s := fenced(t)
	gap := func() consent.Gap {
		t.Helper()
		got, err := consent.CheckTransactions(context.WithoutCancel(t.Context()), s.Client)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if got := gap(); got != (consent.Gap{}) {
		t.Fatalf("the fence is in force: %+v", got)
	}
	// The last fence is first: Check returns the first gap.
	for _, f := range slices.Backward(consent.Fences()) {
		policy, binding := f.Objects()
		patch := client.RawPatch(
			types.JSONPatchType, []byte(`[{"op":"replace","path":"/spec/validations/0/expression","value":"true"}]`),
		)
		if err := s.Client.Patch(t.Context(), policy, patch); err != nil {
			t.Fatal(err)
		}
		if got := gap(); !strings.Contains(got.Fix, "kubectl delete") || !strings.Contains(got.Why, f.Name) ||
			!consent.IsFence(f.Name) {
			t.Errorf("a changed policy %s: %+v", f.Name, got)
		}
		s.Delete(t, binding)
		if got := gap(); !strings.Contains(got.Fix, "xpkg bootstrap") || !strings.Contains(got.Why, f.Name) {
			t.Errorf("without the binding of %s: %+v", f.Name, got)
		}
	}
}
