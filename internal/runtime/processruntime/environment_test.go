package processruntime

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// References to variables are expanded as in the examples of the Kubernetes documentation.
func TestExpand(t *testing.T) {
	variables := map[string]string{"A": "a", "EMPTY": "", "NESTED": "$(A)"}
	for in, want := range map[string]string{
		"": "", "plain": "plain", "$(A)": "a", "x$(A)y$(A)": "xaya", "$$(A)": "$(A)", "$$$(A)": "$a",
		"$(UNKNOWN)": "$(UNKNOWN)",
		"$(EMPTY)":   "", "$(NESTED)": "$(A)", "$A": "$A", "$(A": "$(A", "$": "$", "a$": "a$", "$()": "$()", "$$": "$",
		"$(A)$": "a$",
	} {
		if got := expand(in, variables); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}

func FuzzExpand(f *testing.F) {
	f.Add("$(A)$$(B)$")
	f.Fuzz(func(t *testing.T, s string) {
		if got := expand(s, map[string]string{}); !strings.Contains(s, "$$") && got != s {
			t.Errorf("%q becomes %q without any variable", s, got)
		}
	})
}

const home = "crossplane-system"

func programs(objects ...client.Object) *Runtime {
	return New(Options{Client: fake.NewClientBuilder().WithObjects(objects...).Build(), Namespace: home})
}

func named(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: home, Name: name} }

func TestEnvironment(t *testing.T) {
	p := programs(
		&corev1.Secret{ObjectMeta: named("s"), Data: map[string][]byte{"key": []byte("secret")}},
		&corev1.ConfigMap{ObjectMeta: named("c"), Data: map[string]string{"ONE": "1"}, BinaryData: map[string][]byte{
			"TWO": []byte("2"),
		}},
	)
	secretKey := func(name, key string, optional bool) *corev1.EnvVarSource {
		return &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: key, Optional: &optional,
		}}
	}
	all := corev1.Container{
		EnvFrom: []corev1.EnvFromSource{
			{Prefix: "C_", ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{
				Name: "c",
			}}},
			{SecretRef: &corev1.SecretEnvSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: "absent"}, Optional: new(true),
			}},
		},
		Env: []corev1.EnvVar{
			{Name: "POD", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}},
			{Name: "S", ValueFrom: secretKey("s", "key", false)},
			{Name: "NONE", ValueFrom: secretKey("s", "absent", true)},
			{Name: "BOTH", Value: "$(POD)-$(C_ONE)-$(LATER)"},
			{Name: "LATER", Value: "x"},
			{Name: "HOST", Value: "$(KUBERNETES_SERVICE_HOST)"},
		},
	}
	got, err := p.environment(t.Context(), all, map[string]string{"metadata.name": "me"}, map[string]string{
		"KUBERNETES_SERVICE_HOST": "h",
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"C_ONE": "1", "C_TWO": "2", "POD": "me", "S": "secret", "BOTH": "me-1-$(LATER)", "LATER": "x", "HOST": "h",
		"KUBERNETES_SERVICE_HOST": "h",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
	for name, c := range map[string]corev1.Container{
		"absent key":    {Env: []corev1.EnvVar{{Name: "A", ValueFrom: secretKey("s", "absent", false)}}},
		"absent secret": {Env: []corev1.EnvVar{{Name: "A", ValueFrom: secretKey("absent", "key", false)}}},
		"absent object": {EnvFrom: []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: "absent"},
		}}}},
	} {
		_, err := p.environment(t.Context(), c, nil, map[string]string{})
		if lacks := missing(""); !errors.As(err, &lacks) || !strings.Contains(err.Error(), "absent") {
			t.Errorf("%s: %v, want that it is missing", name, err)
		}
	}
}

func TestVolumes(t *testing.T) {
	tls := &corev1.Secret{ObjectMeta: named("tls"), Data: map[string][]byte{
		"tls.crt": []byte("c"), "tls.key": []byte("k"), "ca.crt": nil,
	}}
	p := programs(tls, &corev1.ConfigMap{ObjectMeta: named("c"), Data: map[string]string{"a": "A", "b": "B"}})
	pod := func(v corev1.VolumeSource, m corev1.VolumeMount) corev1.PodSpec {
		m.Name = "v"
		return corev1.PodSpec{Volumes: []corev1.Volume{{Name: "v", VolumeSource: v}}, Containers: []corev1.Container{{
			VolumeMounts: []corev1.VolumeMount{m},
		}}}
	}
	config := corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: "c"},
	}}
	items := corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "tls", Items: []corev1.KeyToPath{{
		Key: "tls.crt", Path: "in/x.crt",
	}}}}
	cases := map[string]struct {
		pod   corev1.PodSpec
		want  map[string]string
		lacks string
	}{
		"All": {
			pod(config, corev1.VolumeMount{MountPath: "/etc/c"}), map[string]string{"/etc/c/a": "A", "/etc/c/b": "B"}, "",
		},
		"SubPath": {
			pod(config, corev1.VolumeMount{MountPath: "/etc/file", SubPath: "b"}), map[string]string{"/etc/file": "B"}, "",
		},
		"Items": {pod(items, corev1.VolumeMount{MountPath: "/tls"}), map[string]string{"/tls/in/x.crt": "c"}, ""},
		"HalfFilled": {pod(corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
			SecretName: "tls", Items: []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}},
		}}, corev1.VolumeMount{MountPath: "/tls"}), nil, "ca.crt"},
		"Absent": {pod(corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "none"}}, corev1.VolumeMount{
			MountPath: "/x",
		}), nil, "none"},
		"Optional": {pod(
			corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "none", Optional: new(true)}},
			corev1.VolumeMount{MountPath: "/x"},
		), map[string]string{}, ""},
		"Temporary": {
			pod(corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}, corev1.VolumeMount{MountPath: "/tmp"}),
			map[string]string{}, "",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			files, err := p.volumes(t.Context(), tc.pod)
			var lacks missing
			if err != nil && !errors.As(err, &lacks) || !strings.Contains(string(lacks), tc.lacks) ||
				(lacks == "") != (tc.lacks == "") {
				t.Fatalf("lacks %q, %v", lacks, err)
			}
			var got map[string]string
			if files != nil {
				got = map[string]string{}
			}
			for name, data := range files {
				got[name] = string(data)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
		})
	}
}
