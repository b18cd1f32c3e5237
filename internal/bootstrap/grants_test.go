package bootstrap_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/bootstrap"
	"github.com/xpkg-dev/xpkg/internal/controller"
	"github.com/xpkg-dev/xpkg/internal/crossplane"
	"github.com/xpkg-dev/xpkg/internal/fence"
	"github.com/xpkg-dev/xpkg/internal/permission"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/hook"
	"github.com/xpkg-dev/xpkg/internal/testing/lane"
	"github.com/xpkg-dev/xpkg/internal/testing/publish"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
	"github.com/xpkg-dev/xpkg/pkg/rbac"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// unproven lists permissions that no request of these tests needs, as "verb resource",
// each with the reason why it is granted.
var unproven = map[string]string{
	"update providers/finalizers":                    "required by an admission plugin that this API server does not have",
	"update configurations/finalizers":               "required by an admission plugin that this API server does not have",
	"update functions/finalizers":                    "required by an admission plugin that this API server does not have",
	"update providerrevisions/finalizers":            "required by an admission plugin that this API server does not have",
	"update configurationrevisions/finalizers":       "required by an admission plugin that this API server does not have",
	"update functionrevisions/finalizers":            "required by an admission plugin that this API server does not have",
	"update compositeresourcedefinitions/finalizers": "required by an admission plugin that this API server does not have",
	"patch customresourcedefinitions/status":         "the CRD is touched if the API server is slow to serve its kind",
	"delete transactions":                            "the manager deletes the oldest of a hundred",
	"delete controllerrevisions":                     "the manager deletes the oldest of fifty generations",
	"patch providers":                                "a transaction marks dependencies",
	"patch configurations":                           "a transaction marks dependencies",
	"patch functions":                                "a transaction marks dependencies",
}

// held names the permissions that the manager holds in order to grant them, and uses in
// no request.
const held = "package-groups"

// sometimes lists permissions that are only needed occasionally.
var sometimes = map[string]string{
	"patch events":               "an event that is repeated within minutes is counted",
	"get configurationrevisions": "an inactive revision releases objects that the active one does not contain",
	"patch controllerrevisions":  "a generation becomes healthy after it was recorded",
	"get clusterrolebindings":    "an object is read again if the response to its write was lost",
	"get rolebindings":           "an object is read again if the response to its write was lost",

	"update managedresourcedefinitions": "a kind is activated after its definition was written",
	"delete managedresourcedefinitions": "a new version of a Provider does not offer a kind",

	"get validatingwebhookconfigurations": "a single configuration is read if its watch does not show it as written",
	"get mutatingwebhookconfigurations":   "a single configuration is read if its watch does not show it as written",
}

// The manager installs, upgrades and corrects packages of every kind with the permissions
// of the manifests, no request is denied, and every permission is needed.
func TestManagerPermissionsAreSufficientAndMinimal(t *testing.T) {
	s := newEnv(t)
	s.install(t, options().Grants())
	s.forgetManagers(t)
	s.createCore(t)
	seen, stop := s.run(t)
	s.examples(t)
	s.everything(t)
	s.checkDriftIsReverted(t)
	var dependents []v1.Package
	for i, version := range []string{"v1.0.0", "v2.0.0"} {
		dependents = append(dependents, s.dependent(t, fmt.Sprintf("dependent-%d", i), "needed", version))
		s.EnsureCreated(t, dependents[i])
		s.WaitReady(t, dependents[i])
	}
	s.deleteAll(t, dependents...)
	s.waitOrphansRemoved(t)
	s.needsKind(t)
	s.makesTransaction(t)
	stop()
	for c := range seen.denials() {
		t.Errorf("the manager may not %s %s %q of %q", c.verb, c.resource, c.name, c.group)
	}
	used := seen.used()
	for _, g := range options().Grants() {
		if g.Name == held {
			continue
		}
		for _, rule := range g.Rules {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					reason, expected := unproven[verb+" "+resource]
					switch needed := uses(used, rule, resource, verb); {
					case sometimes[verb+" "+resource] != "":
					case needed && expected:
						t.Errorf("%s: %s %s is needed: it is not unproven because %s", g.Name, verb, resource, reason)
					case !needed && !expected:
						t.Errorf("%s: nothing needs to %s %s", g.Name, verb, resource)
					}
				}
			}
		}
	}
}

// forgetManagers deletes the objects that a manager creates for itself and that outlast it.
func (s *testEnv) forgetManagers(t *testing.T) {
	t.Helper()
	lease := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: bootstrap.Lease}}
	lease.SetGroupVersionKind(coordinationv1.SchemeGroupVersion.WithKind("Lease"))
	for _, o := range []client.Object{
		lease,
		&v1beta1.Lock{ObjectMeta: metav1.ObjectMeta{Name: v1beta1.LockName}},
		&admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: fence.RuntimesName}},
		&admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: fence.RuntimesName}},
		&admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: fence.ConsentsName}},
		&admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: fence.ConsentsName}},
		&admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: fence.TransactionsName}},
		&admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: fence.TransactionsName}},
		&admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: fence.ApprovalsName}},
		&admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: fence.ApprovalsName}},
	} {
		err := s.Client.Delete(t.Context(), o)
		if client.IgnoreNotFound(err) != nil && !meta.IsNoMatchError(err) {
			t.Fatal(err)
		}
	}
}

// Each grant is needed: without it, a request of the manager is denied.
func TestEveryGrantIsNeeded(t *testing.T) {
	lane.Full(t, "internal/bootstrap.TestManagerPermissionsAreSufficientAndMinimal")
	s := newEnv(t)
	s.install(t, options().Grants())
	s.createCore(t)
	n := 0
	for _, without := range options().Grants() {
		if onlyUnproven(without) {
			t.Logf(
				"%s: not shown here, as %s", without.Name, unproven[without.Rules[0].Verbs[0]+" "+without.Rules[0].Resources[0]],
			)
			continue
		}
		t.Run(without.Name, func(t *testing.T) {
			s.install(t, slices.DeleteFunc(options().Grants(), func(g bootstrap.Grant) bool {
				// The manager may use the permissions that it holds in order to grant
				// them.
				return g.Name == without.Name || g.Name == held && len(rbac.Missing(g.Rules, without.Rules)) == 0
			}))
			seen, stop := s.run(t)
			defer stop()
			n++
			name := fmt.Sprintf("needs-%d", n)
			s.EnsureCreated(t, s.pullSecret(name))
			provider := env.NewPackage(v1.ProviderKind, name+"-provider", s.Push(
				t, "bootstrap/"+name+"-p", "v1.0.0",
				stream("Provider", name, definition(name, "a"), webhook("ValidatingWebhookConfiguration", name, "a")),
			))
			provider.PackageSpec().PackagePullSecrets = []corev1.LocalObjectReference{{Name: name}}
			s.EnsureCreated(t, provider)
			dependent := s.dependent(t, name+"-dependent", name+"-needed", "v1.0.0")
			s.EnsureCreated(t, dependent)
			if without.Name == "orphans" {
				s.WaitReady(t, dependent)
				s.deleteAll(t, dependent)
			}
			s.EnsureCreated(t, env.NewPackage(
				v1.ConfigurationKind, name,
				s.Push(t, "bootstrap/"+name+"-c", "v1.0.0", stream("Configuration", name, xrd(name, "a"))),
			))
			// A function has certificates, but no permissions that the manager would have
			// to hold.
			s.EnsureCreated(
				t, env.NewPackage(v1.FunctionKind, name, s.Push(t, "bootstrap/"+name+"-f", "v1.0.0", stream("Function", name))),
			)
			wait.Until(t, env.Limit, "a request of the manager is denied", func() (string, bool) {
				denials := seen.denials()
				if without.Name == held {
					return s.reason(t, provider), s.reason(t, provider) == rbac.ErrPermissionMissing.Name
				}
				for _, rule := range without.Rules {
					for _, resource := range rule.Resources {
						for _, verb := range rule.Verbs {
							if uses(denials, rule, resource, verb) {
								return "", true
							}
						}
					}
				}
				return fmt.Sprint(denials), false
			})
		})
	}
}

// reason is why a package is not ready.
func (s *testEnv) reason(t *testing.T, p v1.Package) string {
	t.Helper()
	if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
		t.Fatal(err)
	}
	return string(p.GetCondition(v1.TypeReady).Reason)
}

func onlyUnproven(g bootstrap.Grant) bool {
	for _, rule := range g.Rules {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				if unproven[verb+" "+resource] == "" {
					return false
				}
			}
		}
	}
	return true
}

// examples installs the examples of the repository.
func (s *testEnv) examples(t *testing.T) {
	t.Helper()
	for folder, kind := range map[string]string{
		"provider-hello/package": v1.ProviderKind, "function-greet/package": v1.FunctionKind,
		"configuration-hello": v1.ConfigurationKind,
	} {
		name, _, _ := strings.Cut(folder, "/")
		p := env.NewPackage(kind, name, s.Push(t, "bootstrap/"+name, "v1.0.0", example(t, folder)))
		p.PackageSpec().SkipDependencyResolution = true
		s.EnsureCreated(t, p)
		s.WaitReady(t, p)
	}
}

// everything installs packages with objects of every kind, so many of each that they are
// listed, changes their content, then only their labels, removes most of a provider, and
// makes a registry private.
func (s *testEnv) everything(t *testing.T) {
	t.Helper()
	s.EnsureCreated(t, s.pullSecret("registry"))
	s.EnsureCreated(t, &v1beta1.ImageConfig{
		ObjectMeta: metav1.ObjectMeta{Name: "private"},
		Spec: v1beta1.ImageConfigSpec{
			MatchImages: []v1beta1.ImageMatch{{Type: v1beta1.Prefix, Prefix: s.Registry}},
			Registry: &v1beta1.RegistryConfig{Authentication: &v1beta1.RegistryAuthentication{
				PullSecretRef: corev1.LocalObjectReference{Name: "registry"},
			}},
		},
	})
	for _, kind := range v1.PackageKinds() {
		few := "few-" + strings.ToLower(kind)
		name := "every-" + strings.ToLower(kind)
		if kind == v1.ProviderKind {
			s.serve(t, few)
			s.serve(t, name)
		}
		p := env.NewPackage(kind, few, s.Push(t, "bootstrap/"+few, "v1.0.0", stream(kind, few, all(kind, few, 1)...)))
		s.EnsureCreated(t, p)
		s.WaitReady(t, p)
		p = env.NewPackage(
			kind, name, s.Push(t, "bootstrap/"+name, "v1.0.0", stream(kind, name, all(kind, "first", many)...)),
		)
		// The permissions of the previous version are compared.
		p.SetAnnotations(map[string]string{permission.AnnotationIncrease: string(controller.ApproveIncrease)})
		s.EnsureCreated(t, p)
		s.WaitReady(t, p)
		second := s.Push(t, "bootstrap/"+name, "v2.0.0", stream(kind, name+"-2", all(kind, "second", many)...))
		s.change(t, p, func(spec *v1.PackageSpec) { spec.Package = second })
		for _, label := range []string{"a", "b"} {
			s.change(t, p, func(spec *v1.PackageSpec) { spec.CommonLabels = map[string]string{"label": label} })
		}
		if kind == v1.ProviderKind {
			last := s.Push(t, "bootstrap/"+
				name, "v3.0.0", stream(kind, name+"-3", definition(fmt.Sprintf("of%d-0", many), "third")))
			s.change(t, p, func(spec *v1.PackageSpec) { spec.Package = last })
			s.Delete(t, p)
			s.WaitGone(t, p)
		}
	}
}

// serve starts a program that serves the webhooks of a package.
func (s *testEnv) serve(t *testing.T, name string) {
	t.Helper()
	l := hook.Listen(t)
	hook.Serve(t, s.Client, s.namespace, name, l)
	hook.Route(t, s.Client, s.namespace, name, l.Addr().(*net.TCPAddr))
}

// many is so many objects of a kind that they are listed rather than read one by one.
const many = 9

// all returns objects of each kind that a package can contain.
func all(kind, text string, n int) []string {
	var out []string
	for i := range n {
		name := fmt.Sprintf("of%d-%d", n, i)
		switch kind {
		case v1.FunctionKind:
			continue
		case v1.ProviderKind:
			out = append(out, definition(name, text), managed(name, text),
				webhook("ValidatingWebhookConfiguration", name, text), webhook("MutatingWebhookConfiguration", name, text))
			continue
		}
		out = append(out, xrd(name, text))
		for _, gvk := range [][2]string{
			{"apiextensions.crossplane.io/v1", "Composition"},
			{"apiextensions.crossplane.io/v1alpha1", "ManagedResourceActivationPolicy"},
			{"ops.crossplane.io/v1alpha1", "Operation"}, {"ops.crossplane.io/v1alpha1", "CronOperation"},
			{"ops.crossplane.io/v1alpha1", "WatchOperation"},
		} {
			out = append(out, object(gvk[0], gvk[1], name, text))
		}
	}
	return out
}

// specs are valid specs of the kinds that a package can contain, with a text that makes a difference.
var specs = map[string]string{
	"Composition":                     "{compositeTypeRef: {apiVersion: composite.example.org/v1, kind: Any}, mode: Pipeline, pipeline: [{step: %s, functionRef: {name: any}}]}",
	"ManagedResourceActivationPolicy": "{activate: [%s.example.org]}",
	"Operation":                       "{mode: Pipeline, pipeline: [{step: %s, functionRef: {name: any}}]}",
	"CronOperation":                   "{schedule: '@daily', operationTemplate: {spec: {mode: Pipeline, pipeline: [{step: %s, functionRef: {name: any}}]}}}",
	"WatchOperation":                  "{watch: {apiVersion: v1, kind: ConfigMap}, operationTemplate: {spec: {mode: Pipeline, pipeline: [{step: %s, functionRef: {name: any}}]}}}",
}

func object(apiVersion, kind, name, text string) string {
	return fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata:\n  name: %s\nspec: "+specs[kind]+
		"\n", apiVersion, kind, name, text)
}

// managed returns the ManagedResourceDefinition of a kind.
func managed(name, text string) string {
	return fmt.Sprintf(`apiVersion: apiextensions.crossplane.io/v1alpha1
kind: ManagedResourceDefinition
metadata:
  name: %[1]sm.bootstrap.example.org
spec:
  group: bootstrap.example.org
  names: {kind: M%[2]s, plural: %[1]sm}
  scope: Cluster
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, description: %[3]s}}
`, name, strings.ReplaceAll(name, "-", ""), text)
}

// webhook returns a webhook configuration for the kind of [definition], which has no objects.
func webhook(kind, name, text string) string {
	return fmt.Sprintf(`apiVersion: admissionregistration.k8s.io/v1
kind: %s
metadata: {name: %s}
webhooks:
- name: %s.bootstrap.example.org
  admissionReviewVersions: [v1]
  sideEffects: None
  clientConfig: {service: {name: replaced, namespace: replaced, path: /%[3]s}}
  rules:
  - {apiGroups: [bootstrap.example.org], apiVersions: [v1], resources: [%[4]s], operations: [CREATE]}
`, kind, name, text, "k"+strings.ReplaceAll(name, "-", "")+"s")
}

func definition(name, text string) string {
	return strings.TrimPrefix(
		publish.Definition("bootstrap.example.org", "K"+strings.ReplaceAll(name, "-", ""), text), "---\n",
	)
}

func xrd(name, text string) string {
	return fmt.Sprintf(`apiVersion: apiextensions.crossplane.io/v1
kind: CompositeResourceDefinition
metadata:
  name: %[1]ss.composite.example.org
spec:
  group: composite.example.org
  names: {kind: X%[2]s, plural: %[1]ss}
  versions:
  - name: v1
    served: true
    referenceable: true
    schema: {openAPIV3Schema: {type: object, description: %[3]s}}
`, name, strings.ReplaceAll(name, "-", ""), text)
}

func (s *testEnv) pullSecret(name string) client.Object {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}, Type: corev1.SecretTypeDockerConfigJson,
		StringData: map[string]string{
			corev1.DockerConfigJsonKey: fmt.Sprintf(`{"auths":{%q:{"username":"u","password":"p"}}}`, s.Registry),
		},
	}
}

// createCore creates the Deployment of Crossplane core, and the fence that denies it writes of packages.
func (s *testEnv) createCore(t *testing.T) {
	t.Helper()
	selector := map[string]string{"app": "crossplane"}
	s.EnsureCreated(t, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "crossplane", Labels: map[string]string{
			"app.kubernetes.io/version": "2.0.0",
		}},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: selector},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: selector},
				Spec: corev1.PodSpec{
					ServiceAccountName: "crossplane",
					Containers: []corev1.Container{{Name: "crossplane", Image: "crossplane:v2.0.0", Args: []string{
						"--package-runtime=External",
					}}},
				},
			},
		},
	})
	policy, binding := crossplane.Fence(types.NamespacedName{Namespace: s.namespace, Name: "another"})
	s.EnsureCreated(t, policy)
	s.EnsureCreated(t, binding)
	t.Cleanup(func() {
		for _, o := range []client.Object{policy, binding} {
			if err := s.Client.Delete(context.WithoutCancel(t.Context()), o); err != nil {
				t.Error(err)
			}
		}
	})
}

// example returns the package.yaml of an example, as built by `xpkg build`.
func example(t *testing.T, folder string) string {
	t.Helper()
	files, err := xpkg.ReadFolder(
		os.DirFS(filepath.Join("..", "..", "examples", filepath.FromSlash(folder))), xpkg.FolderOptions{},
	)
	if err != nil {
		t.Fatal(err)
	}
	return string(files.Stream())
}
