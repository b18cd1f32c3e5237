package manifests

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
)

// hardening: E11, G12
func TestImageMustBePinned(t *testing.T) {
	for _, in := range []Input{provider(), function()} {
		if got := build(t, in).Deployment.Spec.Template.Spec.Containers[0].Image; got != in.Image {
			t.Errorf("image %s, want %s", got, in.Image)
		}
		in.Image = "registry.example.org/provider-aws:v1.2.3"
		if _, err := Build(in); !errors.Is(err, ErrUnpinnedImage) {
			t.Errorf("an image without a digest: %v, want UnpinnedImage", err)
		}
	}
}

func TestConfigurationsHaveNoRuntime(t *testing.T) {
	in := provider()
	in.Owner = owner(v1.ConfigurationKind, "platform")
	if _, err := Build(in); !errors.Is(err, ErrNoProgramKind) {
		t.Errorf("got %v, want NoProgramKind", err)
	}
}

// Edge case 94.
func TestRuntimeContainerIsFirst(t *testing.T) {
	in := provider()
	in.Config = containers(
		corev1.Container{Name: "a"}, corev1.Container{Name: Container, Args: []string{"--x"}}, corev1.Container{Name: "b"},
	)
	got := build(t, in).Deployment.Spec.Template.Spec.Containers
	var names []string
	for _, c := range got {
		names = append(names, c.Name)
	}
	if diff := cmp.Diff([]string{Container, "a", "b"}, names); diff != "" || !slices.Equal(got[0].Args, []string{"--x"}) {
		t.Errorf("containers (-want +got):\n%s", diff)
	}
}

// The number of replicas, and the defaults that depend on it.
func TestConfiguredPortsAreKept(t *testing.T) {
	in := function()
	in.Config = containers(corev1.Container{Name: Container, Ports: []corev1.ContainerPort{{
		Name: GRPCPort, ContainerPort: 7443,
	}}})
	out := build(t, in)
	want := []corev1.ContainerPort{{Name: GRPCPort, ContainerPort: 7443}, {Name: metricsPort, ContainerPort: 8080}}
	if diff := cmp.Diff(want, out.Deployment.Spec.Template.Spec.Containers[0].Ports); diff != "" {
		t.Errorf("ports (-want +got):\n%s", diff)
	}
	if want := "dns:///function-auto-ready.crossplane-system:7443"; out.Endpoint != want {
		t.Errorf("endpoint %s, want %s", out.Endpoint, want)
	}
}

// Edge case 96.
func TestScraping(t *testing.T) {
	cases := map[string]struct{ given, want map[string]string }{
		"Default":  {nil, map[string]string{scrape: "true", scrapePort: "8080", scrapePath: "/metrics"}},
		"Refused":  {map[string]string{scrape: "false"}, map[string]string{scrape: "false"}},
		"OwnIsOwn": {map[string]string{scrape: "true", scrapePort: "1"}, map[string]string{scrape: "true", scrapePort: "1"}},
		"Others": {map[string]string{"a": "b"}, map[string]string{
			"a": "b", scrape: "true", scrapePort: "8080", scrapePath: "/metrics",
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := provider()
			in.Config = templated(appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{
				Annotations: tc.given,
			}}})
			if diff := cmp.Diff(tc.want, build(t, in).Deployment.Spec.Template.Annotations); diff != "" {
				t.Errorf("annotations (-want +got):\n%s", diff)
			}
			in.Owner = owner(v1.FunctionKind, "function-auto-ready")
			if diff := cmp.Diff(tc.given, build(t, in).Deployment.Spec.Template.Annotations); diff != "" {
				t.Errorf("annotations of a function (-want +got):\n%s", diff)
			}
		})
	}
}

// Edge case 97.
func TestReplicas(t *testing.T) {
	cases := map[string]struct {
		config  *int32
		awaits  bool
		desired int32
	}{
		"Default":                {nil, false, 1},
		"Configured":             {new(int32(3)), false, 3},
		"ConfiguredZero":         {new(int32(0)), false, 0},
		"Awaiting":               {nil, true, 0},
		"AwaitingWinsOverConfig": {new(int32(3)), true, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := provider()
			in.Config, in.AwaitingActivation = templated(appsv1.DeploymentSpec{Replicas: tc.config}), tc.awaits
			if got := *build(t, in).Deployment.Spec.Replicas; got != tc.desired {
				t.Errorf("%d replicas, want %d", got, tc.desired)
			}
		})
	}
}

// Edge case 101.
func TestServiceAccountWithAnotherOwner(t *testing.T) {
	in := provider()
	in.Config = templated(appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		ServiceAccountName: "theirs",
	}}})
	out := build(t, in)
	if out.ServiceAccount != nil || out.ServiceAccountName != "theirs" {
		t.Errorf("ServiceAccount %v, name %s; want none of ours, and theirs", out.ServiceAccount, out.ServiceAccountName)
	}
}

func TestPullPolicy(t *testing.T) {
	cases := map[string]struct{ pkg, config, want corev1.PullPolicy }{
		"Default":     {"", "", corev1.PullIfNotPresent},
		"OfPackage":   {corev1.PullAlways, "", corev1.PullAlways},
		"OfConfig":    {"", corev1.PullNever, corev1.PullNever},
		"PackageWins": {corev1.PullAlways, corev1.PullNever, corev1.PullAlways},
		// Every package has this policy by default.
		"DefaultOfPackageDoesNot": {corev1.PullIfNotPresent, corev1.PullNever, corev1.PullNever},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := provider()
			in.PullPolicy, in.Config = tc.pkg, containers(corev1.Container{Name: Container, ImagePullPolicy: tc.config})
			if got := build(t, in).Deployment.Spec.Template.Spec.Containers[0].ImagePullPolicy; got != tc.want {
				t.Errorf("pull policy %s, want %s", got, tc.want)
			}
		})
	}
}

// Without a certificate nothing is mounted, and no variable points nowhere.
func TestWithoutCertificates(t *testing.T) {
	in := provider()
	in.TLSServerSecret, in.TLSClientSecret = "", ""
	pod := build(t, in).Deployment.Spec.Template.Spec
	if len(pod.Volumes) != 0 || len(pod.Containers[0].VolumeMounts) != 0 {
		t.Errorf("volumes %v mounted at %v, want none", pod.Volumes, pod.Containers[0].VolumeMounts)
	}
	for _, e := range pod.Containers[0].Env {
		if slices.Contains([]string{serverVariable, clientVariable, webhookVariable}, e.Name) {
			t.Errorf("the variable %s is set", e.Name)
		}
	}
}

// The configuration is used by many packages at once.
func TestBuildDoesNotChangeTheConfiguration(t *testing.T) {
	in := provider()
	in.Config = containers(corev1.Container{Name: "a"}, corev1.Container{Name: Container, Env: []corev1.EnvVar{
		{Name: "REVISION_UID"}, {Name: "X"},
	}})
	before := in.Config.DeepCopy()
	first := build(t, in)
	if diff := cmp.Diff(before, in.Config); diff != "" {
		t.Errorf("the configuration was changed:\n%s", diff)
	}
	if diff := cmp.Diff(first, build(t, in)); diff != "" {
		t.Errorf("built twice:\n%s", diff)
	}
}

// Other certificates are another version of a function's pods, and none of a provider's.
func TestCertificatesOfPods(t *testing.T) {
	for want, in := range map[string]Input{"": provider(), "sha256:one": function()} {
		in.Certificates = "sha256:one"
		if got := build(t, in).Deployment.Spec.Template.Annotations[CertificatesAnnotation]; got != want {
			t.Errorf("%s: %q", in.kind(), got)
		}
	}
}

// The settle time becomes minReadySeconds, unless the configuration sets that field, and
// never results in a Deployment that the API server rejects.
func TestSettleTime(t *testing.T) {
	for name, tc := range map[string]struct {
		spec appsv1.DeploymentSpec
		want int32
	}{
		"Default":               {appsv1.DeploymentSpec{}, 10},
		"Configured":            {appsv1.DeploymentSpec{MinReadySeconds: 2}, 2},
		"ShortProgressDeadline": {appsv1.DeploymentSpec{ProgressDeadlineSeconds: new(int32(5))}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			in := provider()
			in.Settle = 9500 * time.Millisecond
			in.Config = &v1beta1.DeploymentRuntimeConfig{}
			in.Config.Spec.DeploymentTemplate = &v1beta1.DeploymentTemplate{Spec: &tc.spec}
			o, err := Build(in)
			if err != nil {
				t.Fatal(err)
			}
			if got := o.Deployment.Spec.MinReadySeconds; got != tc.want {
				t.Errorf("minReadySeconds %d, want %d", got, tc.want)
			}
		})
	}
}
