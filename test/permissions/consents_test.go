package permissions_test

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/consent"
	"github.com/xpkg-dev/xpkg/internal/controller"
	"github.com/xpkg-dev/xpkg/internal/fence"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/hook"
	"github.com/xpkg-dev/xpkg/internal/webhooks"
	"github.com/xpkg-dev/xpkg/pkg/rbac"
)

const coversCreations = "validate CREATE core/nothing"

// waitsForWebhooks waits until a package has no consent to its webhooks, and returns the message.
func (s *suite) waitsForWebhooks(t *testing.T, p *v1.Provider) string {
	t.Helper()
	return s.waits(t, p, webhooks.ErrNotAllowed.Name)
}

// hasConsent waits until the manager has accepted the consent to the webhooks of a package.
func (s *suite) hasConsent(t *testing.T, p *v1.Provider) {
	t.Helper()
	s.until(t, p, func(ready v1.Condition) bool {
		return string(ready.Reason) != webhooks.ErrNotAllowed.Name && ready.Reason != ""
	})
}

// A user who may write packages and not revisions consents to nothing, and an administrator does.
func TestUsersOfPackagesCannotConsent(t *testing.T) {
	s := newSuite(t)
	s.run(t, s.Config, controller.Permissions{})
	env.Grant(t, s.Client, env.User("tenant"),
		rbacv1.PolicyRule{APIGroups: []string{v1.Group}, Resources: []string{"providers"}, Verbs: []string{
			"get", "create", "update", "patch",
		}})
	tenant := env.NewClient(t, env.AsUser(s.Config, "tenant"))
	own := env.NewProvider(
		"consents",
		s.Push(t, "permissions/consents", "v1", hook.Outside("consents", "consents.example.org", "nothing", "CREATE")),
	)
	own.Annotations = map[string]string{webhooks.AnnotationAllowed: "validate * */*"}
	if err := tenant.Create(t.Context(), own.DeepCopy()); !apierrors.IsForbidden(err) ||
		!strings.Contains(err.Error(), "permission to update providerrevisions.pkg.crossplane.io") {
		t.Fatalf("the tenant has consented: %v", err)
	}
	own.Annotations = nil
	if err := tenant.Create(t.Context(), own); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.CleanUp(t, own) })
	s.waitsForWebhooks(t, own)
	own.Annotations = map[string]string{webhooks.AnnotationAllowed: coversCreations}
	if err := tenant.Update(t.Context(), own.DeepCopy()); !apierrors.IsForbidden(err) {
		t.Fatalf("the tenant has consented: %v", err)
	}
	if code, _, stderr := xpkg(t, "approve", "consents", "--yes"); code != 0 {
		t.Fatalf("xpkg approve ends with %d:\n%s", code, stderr)
	}
	s.hasConsent(t, own)
}

// A manager that cannot have the fence accepts no consent in annotations of packages: it says why, and accepts the one
// of the revision. Once the fence exists, it accepts all.
func TestConsentsDoNotCountWithoutTheirFence(t *testing.T) {
	s := newSuite(t)
	const account = "without-fence"
	cfg := s.identity(t, account)
	all := []string{"*"}
	env.Grant(t, s.Client, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: home, Name: account},
		rbacv1.PolicyRule{Verbs: all, Resources: all, APIGroups: []string{
			"", "apps", "apiextensions.k8s.io", "apiextensions.crossplane.io", "apiregistration.k8s.io", "authorization.k8s.io",
			"coordination.k8s.io",
			"discovery.k8s.io", "events.k8s.io", "ops.crossplane.io", v1.Group, rbacv1.GroupName,
		}},
		rbacv1.PolicyRule{Verbs: all, APIGroups: []string{"admissionregistration.k8s.io"}, Resources: []string{
			"validatingwebhookconfigurations", "mutatingwebhookconfigurations",
		}},
		rbacv1.PolicyRule{
			Verbs: []string{"get", "list", "watch"}, APIGroups: []string{"admissionregistration.k8s.io"},
			Resources: []string{"validatingadmissionpolicies", "validatingadmissionpolicybindings"},
		})
	for _, f := range consent.Fences() {
		policy, binding := f.Objects()
		s.Delete(t, policy, binding)
	}
	s.run(t, cfg, controller.Permissions{})
	s.InstallPackageAPI(t)
	install := func(name string) *v1.Provider {
		p := env.NewProvider(
			name, s.Push(t, "permissions/"+name, "v1", hook.Outside(name, name+".example.org", "nothing", "CREATE")),
		)
		p.Annotations = map[string]string{webhooks.AnnotationAllowed: coversCreations}
		s.CreateTemporary(t, p)
		return p
	}
	first := install("unfenced-first")
	message := s.waitsForWebhooks(t, first)
	for _, part := range []string{
		"does not count", fence.ConsentsName, "xpkg bootstrap", "xpkg approve provider/unfenced-first",
	} {
		if !strings.Contains(message, part) {
			t.Errorf("the message has no %q: %s", part, message)
		}
	}
	if code, _, stderr := xpkg(t, "approve", "unfenced-first", "--yes"); code != 0 {
		t.Fatalf("xpkg approve ends with %d:\n%s", code, stderr)
	}
	s.hasConsent(t, first)
	second := install("unfenced-second")
	s.waitsForWebhooks(t, second)
	for _, f := range consent.Fences() {
		policy, binding := f.Objects()
		s.CreateTemporary(t, policy, binding)
	}
	s.hasConsent(t, second)
}

// An approval of permissions is valid for the repository for which it was given, and a copy of the approved content
// does not pass it on.
func TestApprovalsDoNotApplyToOtherRepositories(t *testing.T) {
	s := newSuite(t)
	s.run(t, s.Config, controller.Permissions{})
	of := func(version string) string {
		return provider("sources", "  annotations: {version: "+version+
			"}\n", requests(execsInPods), crd("things.sources.example.org", "Namespaced"))
	}
	p := s.install(t, "sources", of("first"))
	s.waits(t, p, rbac.ErrPermissionEscalation.Name)
	approve(t, p)
	s.healthy(t, p)
	move := func(tag, stream string) {
		ref := s.Push(t, "permissions/other-sources", tag, stream)
		env.Update(t, s.Env, p, func(p *v1.Provider) { p.Spec.Package = ref })
	}
	move("v1", of("first"))
	s.healthy(t, p)
	move("v2", of("second"))
	s.waits(t, p, rbac.ErrPermissionEscalation.Name)
	approve(t, p)
	s.healthy(t, p)
	move("v3", of("third"))
	s.healthy(t, p)
}
