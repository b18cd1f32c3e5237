package manifests

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

const digest = "@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

func owner(kind, name string) plan.Requester {
	api := v1.GroupVersion.String()
	return plan.Requester{
		Revision: plan.Owner{APIVersion: api, Kind: kind + "Revision", Name: name +
			"-0123456789ab", UID: "uid-of-the-revision"},
		Package:  plan.Owner{APIVersion: api, Kind: kind, Name: name, UID: "uid-of-the-package"},
		Siblings: []string{name + "-0123456789ab", name + "-ba9876543210"},
	}
}

func provider() Input {
	return Input{
		Owner: owner(v1.ProviderKind, "provider-aws"), Namespace: "crossplane-system",
		Image: "registry.example.org/provider-aws:v1.2.3" + digest, PullPolicy: corev1.PullIfNotPresent,
		TLSServerSecret: "provider-aws-tls-server", TLSClientSecret: "provider-aws-tls-client",
	}
}

func function() Input {
	in := provider()
	in.Owner = owner(v1.FunctionKind, "function-auto-ready")
	in.Image = "registry.example.org/function-auto-ready" + digest
	in.TLSServerSecret, in.TLSClientSecret = "function-auto-ready-tls-server", "function-auto-ready-tls-client"
	return in
}

func build(t *testing.T, in Input) Objects {
	t.Helper()
	out, err := Build(in)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// templated returns a configuration with a template of the Deployment.
func templated(spec appsv1.DeploymentSpec) *v1beta1.DeploymentRuntimeConfig {
	return &v1beta1.DeploymentRuntimeConfig{Spec: v1beta1.DeploymentRuntimeConfigSpec{
		DeploymentTemplate: &v1beta1.DeploymentTemplate{Spec: &spec},
	}}
}

// containers returns a configuration with containers.
func containers(c ...corev1.Container) *v1beta1.DeploymentRuntimeConfig {
	return templated(appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: c}}})
}
