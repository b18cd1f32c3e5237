package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/bootstrap"
	"github.com/xpkg-dev/xpkg/internal/cli"
	"github.com/xpkg-dev/xpkg/internal/doctor"
	"github.com/xpkg-dev/xpkg/internal/leader"
	"github.com/xpkg-dev/xpkg/internal/testing/cluster"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// defects creates objects of a cluster that is not fit for a manager: a core in another namespace that may write
// packages, and a webhook without endpoints.
func (b bench) defects(t *testing.T) {
	t.Helper()
	const namespace = "doctor-core"
	labels := map[string]string{"app": "crossplane"}
	objects := []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: namespace},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: "composer"}},
		},
		&appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "crossplane"},
			Spec: appsv1.DeploymentSpec{
				Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: labels},
					Spec: corev1.PodSpec{
						ServiceAccountName: "composer",
						Containers: []corev1.Container{{Name: "core", Image: "registry.example.org/core:v1", Args: []string{
							"--package-runtime=External",
						}}},
					},
				},
			},
		},
		&admissionregistrationv1.ValidatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: namespace},
			Webhooks: []admissionregistrationv1.ValidatingWebhook{{
				Name: "dead.doctor.test", SideEffects: new(admissionregistrationv1.SideEffectClassNone),
				AdmissionReviewVersions: []string{"v1"},
				ClientConfig: admissionregistrationv1.WebhookClientConfig{
					Service: &admissionregistrationv1.ServiceReference{Namespace: namespace, Name: "dead"},
				},
				Rules: []admissionregistrationv1.RuleWithOperations{{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
					Rule: admissionregistrationv1.Rule{
						APIGroups: []string{"doctor.test"}, APIVersions: []string{"v1"}, Resources: []string{"things"},
					},
				}},
			}},
		},
	}
	for _, o := range objects {
		if err := b.client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		b.deleteAfter(t, o)
	}
}

// deleteAfter deletes an object when the test ends.
func (b bench) deleteAfter(t *testing.T, o client.Object) {
	t.Helper()
	t.Cleanup(func() {
		if err := b.client.Delete(context.WithoutCancel(t.Context()), o); client.IgnoreNotFound(err) != nil {
			t.Error(err)
		}
	})
}

// doctor runs xpkg doctor.
func (b bench) doctor(t *testing.T, kubeconfig string, args ...string) ended {
	t.Helper()
	var out, errs bytes.Buffer
	code := cli.Main(t.Context(), append([]string{"xpkg", "doctor", "--kubeconfig", kubeconfig}, args...), &cli.Env{
		Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs,
	})
	return ended{code, out.String(), errs.String()}
}

// diagnose runs xpkg doctor, and returns its findings and its exit code.
func (b bench) diagnose(t *testing.T) (findings []doctor.Finding, exit int) {
	t.Helper()
	got := b.doctor(t, b.kubeconfig, "-o", "json")
	if err := json.Unmarshal([]byte(got.out), &findings); err != nil {
		t.Fatalf("%v: %s %s", err, got.out, got.errors)
	}
	return findings, got.code
}

// has reports whether a failed check has a finding with all parts.
func has(findings []doctor.Finding, check string, parts ...string) bool {
	for _, f := range findings {
		matches := f.Check == check && f.Result == doctor.Fail
		for _, part := range parts {
			matches = matches && strings.Contains(f.Message+" "+f.Fix, part)
		}
		if matches {
			return true
		}
	}
	return false
}

// xpkg doctor finds what would break a manager or its packages in a real cluster, prints the commands that correct it,
// and reports nothing of it when it is corrected.
func TestDoctorFindsTheDefectsOfACluster(t *testing.T) {
	b := newBench(t)
	defects := map[string][]string{
		"Crossplane core": {"the namespace doctor-core", "xpkg bootstrap --beside-core --core-account doctor-core/composer"},
		"webhooks":        {"doctor-core/dead", "kubectl delete validatingwebhookconfiguration doctor-core"},
		"packages":        {"provider/undiagnosed", "RepositoryNotFound", "xpkg describe provider/undiagnosed"},
	}
	before, _ := b.diagnose(t)
	for check, parts := range defects {
		if has(before, check, parts...) {
			t.Errorf("before: %s fails: %+v", check, before)
		}
	}
	for _, f := range before {
		if f.Check == "permissions" && f.Result != doctor.OK || f.Check == "package API" && f.Result != doctor.OK {
			t.Errorf("before: %+v", f)
		}
	}
	b.defects(t)
	p := &v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "undiagnosed"}, Spec: v1.ProviderSpec{
		PackageSpec: v1.PackageSpec{Package: b.registry + "/undiagnosed:v1"},
	}}
	if err := b.client.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	b.deleteAfter(t, p)
	wait.Until(t, env.Limit, "the package fails", func() (string, bool) {
		err := b.client.Get(t.Context(), client.ObjectKeyFromObject(p), p)
		return p.GetCondition(v1.TypeReady).Message, err == nil && p.GetCondition(v1.TypeReady).Reason == "RepositoryNotFound"
	})
	after, exit := b.diagnose(t)
	for check, parts := range defects {
		if !has(after, check, parts...) {
			t.Errorf("%s is not reported: %+v", check, after)
		}
	}
	if exit != errcode.Unhealthy.Exit {
		t.Errorf("exit code %d, want %d", exit, errcode.Unhealthy.Exit)
	}
	text := b.doctor(t, b.kubeconfig)
	for _, part := range []string{
		"RESULT", "fail", "Crossplane core", "kubectl delete validatingwebhookconfiguration doctor-core",
	} {
		if !strings.Contains(text.out, part) {
			t.Errorf("the text lacks %q: %s", part, text.out)
		}
	}
	if !strings.HasPrefix(text.errors, "error: ClusterUnhealthy: ") {
		t.Errorf("the failure is %s", text.errors)
	}
}

// TestDoctorReadsTheServer checks the findings that need no running manager against a real API server.
func TestDoctorReadsTheServer(t *testing.T) {
	b := bench{t: t, config: cluster.Start(t), kubeconfig: cluster.Kubeconfig(t)}
	(&env.Env{Config: b.config}).InstallPackageAPI(t)
	b.client = env.NewClient(t, b.config)
	if err := coordinationv1.AddToScheme(b.client.Scheme()); err != nil {
		t.Fatal(err)
	}
	const namespace = "doctor-managers"
	lease := func(namespace string) client.Object {
		return &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: leader.DefaultLease},
			Spec: coordinationv1.LeaseSpec{
				HolderIdentity: new("manager-of-" + namespace), LeaseDurationSeconds: new(int32(3600)),
				RenewTime: &metav1.MicroTime{Time: time.Now()},
			},
		}
	}
	p := &v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "unreachable"}, Spec: v1.ProviderSpec{
		PackageSpec: v1.PackageSpec{Package: "127.0.0.1:1/unreachable:v1"},
	}}
	for _, o := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, lease(namespace), lease("default"), p,
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: namespace},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
			Subjects: []rbacv1.Subject{{
				Kind: rbacv1.ServiceAccountKind, Namespace: "crossplane-system", Name: bootstrap.Name,
			}},
		},
	} {
		if err := b.client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		b.deleteAfter(t, o)
	}
	b.annotateDefinition(t, "locks.pkg.crossplane.io", plan.ContentDigestAnnotation, "another")
	findings, _ := b.diagnose(t)
	for check, parts := range map[string][]string{
		"manager": {"2 managers work on the cluster", "manager-of-" +
			namespace, "kubectl scale deployment/xpkg --namespace"},
		"manager permissions": {"escalate and bind"},
		"package API":         {"of another version: locks.pkg.crossplane.io"},
		"registries":          {"127.0.0.1:1 does not respond"},
		"packages":            {"provider/unreachable is not reconciled yet", "xpkg describe provider/unreachable"},
	} {
		if !slices.ContainsFunc(findings, func(f doctor.Finding) bool {
			return f.Check == check && f.Result != doctor.OK &&
				!slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(f.Message+" "+f.Fix, part) })
		}) {
			t.Errorf("%s: no finding with %q: %+v", check, parts, findings)
		}
	}
}

// annotateDefinition changes an annotation of a CRD until the test ends.
func (b bench) annotateDefinition(t *testing.T, name, key, value string) {
	t.Helper()
	crd := &metav1.PartialObjectMetadata{}
	crd.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	if err := b.client.Get(t.Context(), client.ObjectKey{Name: name}, crd); err != nil {
		t.Fatal(err)
	}
	before := crd.Annotations[key]
	set := func(ctx context.Context, value string) error {
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{key: value}}})
		if err != nil {
			return err
		}
		return b.client.Patch(ctx, crd, client.RawPatch(types.MergePatchType, patch))
	}
	if err := set(t.Context(), value); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := set(context.WithoutCancel(t.Context()), before); err != nil {
			t.Error(err)
		}
	})
}

// A user with few permissions gets the findings of the checks that the user may make.
func TestDoctorNamesChecksThatTheUserMayNotMake(t *testing.T) {
	b := newBench(t)
	got := b.doctor(t, b.reader(t))
	for _, part := range []string{"you may not create", "cannot be checked: "} {
		if !strings.Contains(got.out, part) {
			t.Errorf("the output lacks %q: %s %s", part, got.out, got.errors)
		}
	}
	if got.code != errcode.Unauthorized.Exit && got.code != errcode.Unhealthy.Exit {
		t.Errorf("exit code %d: %s", got.code, got.errors)
	}
}
