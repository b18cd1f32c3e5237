//go:build unix

package up_test

import (
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/xpkg-dev/xpkg/internal/up"
)

const mapName = "kept"

func client(t *testing.T, s up.State) kubernetes.Interface {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", s.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func tag(t *testing.T, s up.State) name.Tag {
	t.Helper()
	tag, err := name.NewTag(s.Registry + "/group/package:v1.0.0")
	if err != nil {
		t.Fatal(err)
	}
	return tag
}

// credentials returns the credentials that writes to the registry need.
func credentials(t *testing.T, s up.State) remote.Option {
	t.Helper()
	token, err := up.RegistryToken(s.DataDir, s.Registry)
	if err != nil || token == "" {
		t.Fatalf("no token for the registry: %v", err)
	}
	return remote.WithAuth(&authn.Basic{Username: up.RegistryUser, Password: token})
}

// put makes an object in the API server and an image in the registry.
func put(t *testing.T, s up.State) v1.Hash {
	t.Helper()
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: mapName}, Data: map[string]string{"a": "b"}}
	_, err := client(t, s).CoreV1().ConfigMaps("default").Create(t.Context(), object, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	image, err := random.Image(10_000, 2)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(tag(t, s), image, credentials(t, s)); err != nil {
		t.Fatal(err)
	}
	digest, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return digest
}

// want checks that the content of put exists.
func want(t *testing.T, s up.State, digest v1.Hash) {
	t.Helper()
	object, err := client(t, s).CoreV1().ConfigMaps("default").Get(t.Context(), mapName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if object.Data["a"] != "b" {
		t.Errorf("the object has lost its data: %v", object.Data)
	}
	image, err := remote.Image(tag(t, s))
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := image.Digest(); got != digest {
		t.Errorf("the tag names %s, want %s", got, digest)
	}
	if _, err := image.Layers(); err != nil {
		t.Error(err)
	}
}

// wantNothing requests content that the registry does not have, which must do no harm.
func wantNothing(t *testing.T, s up.State) {
	t.Helper()
	ref, err := name.NewTag(s.Registry + "/not/there:v1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := remote.Get(ref); err == nil {
		t.Error("an image exists that was not created")
	}
}

// wantDeletable checks that an image can be deleted from the registry.
func wantDeletable(t *testing.T, s up.State, digest v1.Hash) {
	t.Helper()
	if err := remote.Delete(tag(t, s).Digest(digest.String()), credentials(t, s)); err != nil {
		t.Fatal(err)
	}
	if _, err := remote.Get(tag(t, s)); err == nil {
		t.Error("the tag is still there after its image was deleted")
	}
}
