package planner_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/planner"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/internal/runtime/deployment"
	"github.com/xpkg-dev/xpkg/internal/runtime/manifests"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/unpack"
	"github.com/xpkg-dev/xpkg/pkg/plan"
	"github.com/xpkg-dev/xpkg/pkg/runtimedefaults"
)

// imageConfig is the configuration of every runtime image.
type imageConfig unpack.RuntimeConfig

func (c imageConfig) RuntimeConfig(
	context.Context, fetch.Origin, oci.Digest, oci.Platform,
) (unpack.RuntimeConfig, error) {
	return unpack.RuntimeConfig(c), nil
}

func announced(choice, privileges string) *v1beta1.Lock {
	return &v1beta1.Lock{ObjectMeta: metav1.ObjectMeta{Name: v1beta1.LockName, Annotations: map[string]string{
		runtime.AnnotationChoice: choice, runtime.AnnotationPrivileges: privileges,
	}}}
}

// configured returns the default runtime configuration with a pod and the name of a ServiceAccount.
func configured(pod corev1.PodSpec, account string) *v1beta1.DeploymentRuntimeConfig {
	c := &v1beta1.DeploymentRuntimeConfig{ObjectMeta: metav1.ObjectMeta{Name: v1.DefaultRuntimeConfigName}}
	c.Spec.DeploymentTemplate = &v1beta1.DeploymentTemplate{Spec: &appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{
		Spec: pod,
	}}}
	if account != "" {
		c.Spec.ServiceAccountTemplate = &v1beta1.ServiceAccountTemplate{Metadata: &v1beta1.ObjectMeta{Name: &account}}
	}
	return c
}

// The manager creates webhook configurations only for packages with a runtime.
func TestPlanOfWebhooksDependsOnTheRuntime(t *testing.T) {
	s := newFakeContent()
	const ref, hook = "registry.example.com/boats:v1", `---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: boats}
webhooks:
- name: boats.boats.test
  admissionReviewVersions: [v1]
  sideEffects: None
  clientConfig: {service: {name: boats, namespace: default, path: /boats}}
  rules: [{apiGroups: [boats.test], apiVersions: [v1], operations: [CREATE], resources: [boats]}]
`
	s.put(ref, provider("boats", "", crd("boats.test", "Boat", "one"), hook))
	const none = "the manager runs no runtime for provider/boats (package runtime None)"
	for choice, want := range map[string]struct {
		changes int
		reason  string
	}{
		"None": {1, none}, "Provider=Deployment;Provider/boats=None": {1, none},
		"Provider=None;Provider/boats=Deployment": {2, ""}, "External": {2, ""}, "Deployment": {2, ""},
		// A manager of an earlier version announces nothing.
		"": {2, ""},
	} {
		got, err := fakePlanner(t, s, announced(choice, "")).
			Install(t.Context(), env.NewProvider("boats", ref), planner.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if n := len(got.Objects.Changes); n != want.changes {
			t.Errorf("%q: %d changes, want %d: %+v", choice, n, want.changes, got.Objects)
		}
		checkLeftOut(t, choice, got, want.reason)
	}
	const bare = "registry.example.com/bare:v1"
	s.put(bare, provider("bare", "  annotations: {"+runtimedefaults.Annotation+
		": '{\"none\": true}'}\n", crd("bare.test", "Bare", "one"), hook))
	got, err := fakePlanner(t, s, announced("Deployment", "")).
		Install(t.Context(), env.NewProvider("bare", bare), planner.Options{})
	if err != nil {
		t.Fatal(err)
	}
	checkLeftOut(t, "no runtime in the content", got, "the content of provider/bare has no runtime that serves them")
}

// The plan warns of a conversion webhook that the manager runs no runtime for.
func TestPlanOfConversionWebhooksDependsOnTheRuntime(t *testing.T) {
	s := newFakeContent()
	const ref = "registry.example.com/boats:v1"
	const conversion = "  conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {service: {name: boats, namespace: default}}}}\n"
	converted := strings.Replace(crd("boats.test", "Boat", "one"), "\nspec:\n", "\nspec:\n"+conversion, 1)
	if !strings.Contains(converted, conversion) {
		t.Fatalf("the CRD has no conversion: %s", converted)
	}
	s.put(ref, provider("boats", "", converted, crd("boats.test", "Raft", "one")))
	const webhook = "the conversion webhook of CustomResourceDefinition boats.boats.test"
	const none, external = "No runtime serves " + webhook +
		", because the manager runs no runtime for provider/boats (package runtime None): ",
		"The runtime of provider/boats, which the manager does not run, must serve " + webhook + ": "
	for choice, want := range map[string]string{
		"None": none, "Provider=Deployment;Provider/boats=None": none, "External": external,
		"Provider=None;Provider/boats=Deployment": "", "Process": "",
		// A manager of an earlier version announces nothing.
		"": "",
	} {
		got, err := fakePlanner(t, s, announced(choice, "")).
			Install(t.Context(), env.NewProvider("boats", ref), planner.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var warned []string
		for _, w := range got.Warnings {
			if strings.Contains(w, "conversion webhook") {
				warned = append(warned, w)
			}
		}
		if want == "" && len(warned) > 0 || want != "" && (len(warned) != 1 || !strings.HasPrefix(warned[0], want)) {
			t.Errorf("%q: the plan warns %q, want %q", choice, warned, want)
		}
	}
}

// The plan of a Provider that shares its CRDs with namespaces lists no permissions: it has no runtime, whatever the
// manager announces.
func TestPlanOfASharedProviderListsNoPermissions(t *testing.T) {
	s := newFakeContent()
	const ref = "registry.example.com/boats:v1"
	s.put(ref, provider("boats", "", crd("boats.test", "Boat", "one")))
	for _, choice := range []string{"Deployment", "Process", ""} {
		for _, isShared := range []bool{false, true} {
			p := env.NewProvider("boats", ref)
			if isShared {
				p.Annotations = map[string]string{revision.AnnotationNamespacedInstalls: revision.AllowInstalls}
			}
			got, err := fakePlanner(t, s, announced(choice, "")).Install(t.Context(), p, planner.Options{})
			if err != nil || (got.Permissions == nil) != isShared {
				t.Errorf("%q, shared %t: the permissions are %+v: %v", choice, isShared, got.Permissions, err)
			}
		}
	}
}

// checkLeftOut checks that a plan leaves out the webhook configuration of its package for a reason, or nothing if the
// reason is empty.
func checkLeftOut(t *testing.T, name string, p *planner.Plan, reason string) {
	t.Helper()
	left := p.AllLeftOut()
	if reason == "" {
		if len(left) > 0 {
			t.Errorf("%s: left out: %+v", name, left)
		}
		return
	}
	want := "ValidatingWebhookConfiguration crossplane-" + strings.ReplaceAll(p.Package.Short(), "/", "-")
	if len(left) != 1 || !slices.Equal(left[0].Objects, []string{want}) || left[0].Reason != reason || left[0].Fix == "" {
		t.Errorf("%s: left out: %+v, want %s because %s", name, left, want, reason)
	}
	if raw, err := planner.Encode(p); err != nil || !strings.Contains(string(raw), `"leftOut"`) {
		t.Errorf("%s: the JSON of the plan has no leftOut: %v", name, err)
	}
}

func TestPlanRefusesWhatTheManagerRefusesToRun(t *testing.T) {
	s := newFakeContent()
	const ref = "registry.example.com/boats:v1"
	s.put(ref, provider("boats", "", crd("boats.test", "Boat", "one")))
	program := imageConfig{Entrypoint: []string{"/provider"}}
	hostNetwork := corev1.PodSpec{HostNetwork: true}
	command := corev1.PodSpec{Containers: []corev1.Container{{Name: manifests.Container, Command: []string{"/provider"}}}}
	setup := corev1.PodSpec{InitContainers: []corev1.Container{{Name: "setup"}}}
	resource := corev1.PodSpec{Containers: []corev1.Container{{Name: manifests.Container, Env: []corev1.EnvVar{
		{Name: "LIMIT", ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{
			Resource: "limits.cpu",
		}}},
	}}}}
	foreign := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "crossplane-system", Name: "cluster-admin"}}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "crossplane-system", Name: "boats"}}
	other := func(o client.Object) client.Object {
		o.SetNamespace("crossplane-system")
		o.SetName("cars")
		o.SetOwnerReferences([]metav1.OwnerReference{{
			APIVersion: v1.GroupVersion.String(), Kind: v1.ProviderRevisionKind, Name: "cars-0123456789ab",
			Controller: new(true),
		}})
		o.SetAnnotations(map[string]string{plan.ContentDigestAnnotation: "x"})
		return o
	}
	named := configured(corev1.PodSpec{}, "")
	named.Spec.ServiceTemplate = &v1beta1.ServiceTemplate{Metadata: &v1beta1.ObjectMeta{Name: new("cars")}}
	named.Spec.DeploymentTemplate.Metadata = &v1beta1.ObjectMeta{Name: new("cars")}
	stopped := configured(corev1.PodSpec{}, "")
	stopped.Spec.DeploymentTemplate.Spec.Replicas = new(int32(0))
	for name, tc := range map[string]struct {
		lock    *v1beta1.Lock
		image   imageConfig
		objects []client.Object
		code    errcode.Code
		reason  string
	}{
		"no program": {
			announced("Process", ""), imageConfig{}, nil, runtime.ErrNoProgram, "has neither an entrypoint nor a command",
		},
		"no program of this package": {
			announced("Function=Deployment;Provider=None;Provider/boats=Process", ""), imageConfig{}, nil, runtime.ErrNoProgram,
			"",
		},
		"program": {announced("Process", ""), program, nil, errcode.Code{}, ""},
		"program in the config": {
			announced("Process", ""), imageConfig{}, []client.Object{configured(command, "")}, errcode.Code{}, "",
		},
		"no program in a cluster":   {announced("Deployment", ""), imageConfig{}, nil, errcode.Code{}, ""},
		"no program and no runtime": {announced("None", ""), imageConfig{}, nil, errcode.Code{}, ""},
		"no program, external":      {announced("External", ""), imageConfig{}, nil, errcode.Code{}, ""},
		"earlier manager":           {announced("", ""), imageConfig{}, nil, errcode.Code{}, ""},
		"host network": {
			announced("Deployment", ""), program, []client.Object{configured(hostNetwork, "")}, manifests.ErrPrivileges,
			"requests hostNetwork",
		},
		"other privilege allowed": {
			announced("Deployment", "HostPath"), program, []client.Object{configured(hostNetwork, "")}, manifests.ErrPrivileges,
			"requests hostNetwork",
		},
		"host network allowed": {
			announced("Deployment", "HostPath,HostNetwork"), program, []client.Object{configured(hostNetwork, "")},
			errcode.Code{}, "",
		},
		"host network of a process": {
			announced("Process", ""), program, []client.Object{configured(hostNetwork, "")}, errcode.Code{}, "",
		},
		"init container": {
			announced("Process", ""), program, []client.Object{configured(setup, "")}, manifests.ErrNotForProcesses,
			"has the init container setup",
		},
		"variable of a resource": {
			announced("Process", ""), program, []client.Object{configured(resource, "")}, manifests.ErrNotForProcesses,
			"has the variable LIMIT",
		},
		"init container of a pod": {
			announced("Deployment", ""), program, []client.Object{configured(setup, "")}, errcode.Code{}, "",
		},
		"foreign account": {
			announced("Deployment", ""), program, []client.Object{configured(corev1.PodSpec{}, foreign.Name), foreign},
			manifests.ErrPrivileges, "the ServiceAccount cluster-admin",
		},
		"foreign account, as process": {
			announced("Process", ""), program, []client.Object{configured(corev1.PodSpec{}, foreign.Name), foreign},
			manifests.ErrPrivileges, "the ServiceAccount cluster-admin",
		},
		"foreign account allowed": {
			announced("Deployment", "ServiceAccount"), program,
			[]client.Object{configured(corev1.PodSpec{}, foreign.Name), foreign}, errcode.Code{}, "",
		},
		"account of another package": {announced("Deployment", ""), program, []client.Object{
			configured(corev1.PodSpec{}, "cars"), other(&corev1.ServiceAccount{}),
		}, manifests.ErrPrivileges, "which belongs to ProviderRevision/cars-0123456789ab"},
		"account of another, process": {announced("Process", ""), program, []client.Object{
			configured(corev1.PodSpec{}, "cars"), other(&corev1.ServiceAccount{}),
		}, manifests.ErrPrivileges, "which belongs to ProviderRevision/cars-0123456789ab"},
		"account of another, in the pod": {announced("Process", ""), program, []client.Object{
			configured(corev1.PodSpec{ServiceAccountName: "cars"}, ""), other(&corev1.ServiceAccount{}),
		}, manifests.ErrPrivileges, "which belongs to ProviderRevision/cars-0123456789ab"},
		"Service of another package": {
			announced("Deployment", ""), program, []client.Object{named, other(&corev1.Service{})}, deployment.ErrNameConflict,
			"Service crossplane-system/cars belongs to ProviderRevision/cars-0123456789ab",
		},
		"Service of another, process": {
			announced("Process", ""), program, []client.Object{named, other(&corev1.Service{})}, deployment.ErrNameConflict,
			"Service crossplane-system/cars belongs to ProviderRevision/cars-0123456789ab",
		},
		"foreign Service": {
			announced("Deployment", ""), program, []client.Object{service}, deployment.ErrNameConflict,
			"Service crossplane-system/boats exists",
		},
		"foreign Service, as process": {
			announced("Process", ""), program, []client.Object{service}, deployment.ErrNameConflict,
			"Service crossplane-system/boats exists",
		},
		"foreign Service, stopped": {
			announced("Process", ""), program, []client.Object{service, stopped}, errcode.Code{}, "",
		},
		"foreign Service, external": {announced("External", ""), program, []client.Object{service}, errcode.Code{}, ""},
		"account that is created": {
			announced("Deployment", ""), program, []client.Object{configured(corev1.PodSpec{}, "boats")}, errcode.Code{}, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			pl := fakePlanner(t, s, append(tc.objects, tc.lock)...)
			pl.Images = tc.image
			got, err := pl.Install(t.Context(), env.NewProvider("boats", ref), planner.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if want := name == "no program and no runtime"; got.WithoutRuntime != want {
				t.Errorf("without a runtime is %t, want %t", got.WithoutRuntime, want)
			}
			refused := got.RefusalError()
			if tc.code.Name == "" {
				if len(got.Findings) > 0 || refused != nil || got.Blocked() {
					t.Fatalf("refused: %+v, %v", got.Findings, refused)
				}
				return
			}
			failed := errcode.From(refused)
			if !got.Blocked() || failed == nil || failed.Code.Name != tc.code.Name ||
				!strings.Contains(failed.Error(), tc.reason) || failed.Do == "" {
				t.Errorf("got %v, want %s with %q", refused, tc.code.Name, tc.reason)
			}
			raw, err := planner.Encode(got)
			if err != nil || !strings.Contains(string(raw), `"code": "`+tc.code.Name+`"`) {
				t.Errorf("the JSON of the plan has no code %s: %v", tc.code.Name, err)
			}
		})
	}
}

// A runtime configuration that does not exist is refused by plans, as by the manager.
func TestPlanRefusesAMissingRuntimeConfig(t *testing.T) {
	s := newFakeContent()
	const ref = "registry.example.com/boats:v1"
	s.put(ref, provider("boats", "", crd("boats.test", "Boat", "one")))
	p := env.NewProvider("boats", ref)
	p.Spec.RuntimeConfigRef = &v1.RuntimeConfigReference{Name: "absent"}
	got, err := fakePlanner(t, s, announced("Deployment", "")).Install(t.Context(), p, planner.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if failed := errcode.From(got.RefusalError()); failed == nil || failed.Code.Name != runtime.ErrRuntimeConfig.Name {
		t.Errorf("got %v", got.RefusalError())
	}
}

// platformImage is an image for some platforms.
type platformImage []string

func (c platformImage) RuntimeConfig(
	_ context.Context, _ fetch.Origin, _ oci.Digest, platform oci.Platform,
) (unpack.RuntimeConfig, error) {
	if !slices.Contains(c, platform.String()) {
		return unpack.RuntimeConfig{}, unpack.ErrWrongPlatform.New(nil, "the image is not for %s", platform)
	}
	return unpack.RuntimeConfig{Entrypoint: []string{"/run"}}, nil
}

// An image that the manager cannot run is refused by the plan, if the manager announces its platform.
func TestPlanKnowsThePlatformOfTheManager(t *testing.T) {
	s := newFakeContent()
	const ref = "registry.example.com/boats:v1"
	s.put(ref, provider("boats", "", crd("boats.test", "Boat", "one")))
	for name, tc := range map[string]struct{ runtime, platform, refused string }{
		"same platform":      {"Process", "linux/arm64", ""},
		"another platform":   {"Process", "linux/s390x", unpack.ErrWrongPlatform.Name},
		"not announced":      {"Process", "", ""},
		"pods on many nodes": {"Deployment", "linux/s390x", ""},
	} {
		lock := announced(tc.runtime, "")
		lock.Annotations[runtime.AnnotationPlatform] = tc.platform
		pl := fakePlanner(t, s, lock)
		pl.Images = platformImage{"linux/arm64"}
		got, err := pl.Install(t.Context(), env.NewProvider("boats", ref), planner.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if failed := got.RefusalError(); (failed != nil) != (tc.refused != "") ||
			failed != nil && errcode.From(failed).Code.Name != tc.refused {
			t.Errorf("%s: got %v, want %q", name, failed, tc.refused)
		}
	}
}

// A plan warns of a runtime whose pods the namespace does not allow: the API server accepts its Deployment.
func TestPlanAsksAboutPods(t *testing.T) {
	e, s := env.New(t), newFakeContent()
	const ref = "registry.example.com/boats:v1"
	s.put(ref, provider("boats", "", crd("boats.test", "Boat", "one")))
	root := corev1.PodSpec{SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: new(false), RunAsUser: new(int64(0))}}
	for name, tc := range map[string]struct {
		level string
		pod   corev1.PodSpec
		limit *corev1.LimitRangeItem
		want  string
	}{
		"free":       {"privileged", root, nil, ""},
		"usual":      {"restricted", corev1.PodSpec{}, nil, ""},
		"restricted": {"restricted", root, nil, "violates PodSecurity"},
		"limited": {"privileged", root, &corev1.LimitRangeItem{Type: corev1.LimitTypePod, Min: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("1"),
		}}, "minimum cpu usage per Pod is 1"},
	} {
		home := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "planned-pods-" + name, Labels: map[string]string{
			"pod-security.kubernetes.io/enforce": tc.level,
		}}}
		e.CreateTemporary(t, home)
		if tc.limit != nil {
			e.CreateTemporary(t, &corev1.LimitRange{
				ObjectMeta: metav1.ObjectMeta{Namespace: home.Name, Name: "limits"},
				Spec:       corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{*tc.limit}},
			})
		}
		pl := fakePlanner(t, s, announced("Deployment", ""), configured(tc.pod, ""))
		pl.Namespace, pl.DryRun = home.Name, client.NewDryRunClient(e.Client)
		var warning string
		wait.Until(t, time.Minute, name+": the plan has the warning", func() (string, bool) {
			got, err := pl.Install(t.Context(), env.NewProvider("boats", ref), planner.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if warning = ""; slices.ContainsFunc(got.Warnings, func(w string) bool {
				warning = w
				return strings.Contains(w, "cannot start in the namespace "+home.Name)
			}) {
				return warning, tc.want != ""
			}
			return fmt.Sprint(got.Warnings), tc.want == ""
		})
		if tc.want != "" && !strings.Contains(warning, tc.want) {
			t.Errorf("%s: %q does not contain %q", name, warning, tc.want)
		}
		var all corev1.PodList
		if err := e.Client.List(t.Context(), &all, client.InNamespace(home.Name)); err != nil || len(all.Items) > 0 {
			t.Errorf("a plan leaves %d pods: %v", len(all.Items), err)
		}
	}
}

// A plan asks the API server with a dry run whether it accepts the Deployment. Without the permission, it warns that
// the check was not made.
func TestPlanAsksAboutTheDeployment(t *testing.T) {
	e, s := env.New(t), newFakeContent()
	const ref = "registry.example.com/boats:v1"
	s.put(ref, provider("boats", "", crd("boats.test", "Boat", "one")))
	home := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "planned-runtimes"}}
	e.CreateTemporary(t, home)
	stranger := rest.CopyConfig(e.Config)
	stranger.Impersonate.UserName = "stranger"
	port := corev1.PodSpec{Containers: []corev1.Container{{Name: manifests.Container, Ports: []corev1.ContainerPort{{
		ContainerPort: 70000,
	}}}}}
	for name, tc := range map[string]struct {
		as      *rest.Config
		pod     corev1.PodSpec
		refused string
		warned  bool
	}{
		"accepted":                      {e.Config, corev1.PodSpec{}, "", false},
		"refused":                       {e.Config, port, manifests.ErrRejected.Name, false},
		"refused, for a stranger":       {stranger, port, "", true},
		"not checked, without a client": {nil, port, "", false},
	} {
		pl := fakePlanner(t, s, announced("Deployment", ""), configured(tc.pod, ""))
		pl.Namespace = home.Name
		if tc.as != nil {
			pl.DryRun = client.NewDryRunClient(env.NewClient(t, tc.as))
		}
		got, err := pl.Install(t.Context(), env.NewProvider("boats", ref), planner.Options{})
		if err != nil {
			t.Fatal(err)
		}
		refused := ""
		if len(got.Findings) > 0 {
			refused = got.Findings[0].Code
		}
		warned := slices.ContainsFunc(got.Warnings, func(w string) bool {
			return strings.Contains(w, "the API server was not asked whether it accepts the Deployment")
		})
		if refused != tc.refused || warned != tc.warned {
			t.Errorf("%s: refused with %q, warnings %q", name, refused, got.Warnings)
		}
	}
	var all appsv1.DeploymentList
	if err := e.Client.List(t.Context(), &all, client.InNamespace(home.Name)); err != nil || len(all.Items) > 0 {
		t.Errorf("a plan leaves %d Deployments: %v", len(all.Items), err)
	}
}
