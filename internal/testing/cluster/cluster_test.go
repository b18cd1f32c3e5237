package cluster_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/xpkg-dev/xpkg/internal/testing/cluster"
)

func TestStartSharesOneServer(t *testing.T) {
	first, second := cluster.Start(t), cluster.Start(t)
	if first == second {
		t.Error("two tests share one configuration: a change of one would surprise the other")
	}
	if first.Host != second.Host {
		t.Errorf("two servers: %s and %s", first.Host, second.Host)
	}
	client, err := kubernetes.NewForConfig(first)
	if err != nil {
		t.Fatal(err)
	}
	want := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "shared-"}, Data: map[string]string{"a": "b"}}
	maps := client.CoreV1().ConfigMaps(metav1.NamespaceDefault)
	made, err := maps.Create(t.Context(), want, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := maps.Get(t.Context(), made.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.Data, got.Data); diff != "" {
		t.Error(diff)
	}
}

func TestRegistry(t *testing.T) {
	image, err := random.Image(1000, 2)
	if err != nil {
		t.Fatal(err)
	}
	tag, err := name.NewTag(cluster.Registry(t) + "/a/b:v1")
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(tag, image); err != nil {
		t.Fatal(err)
	}
	got, err := remote.Get(tag)
	if err != nil {
		t.Fatal(err)
	}
	if want, _ := image.Digest(); got.Digest != want {
		t.Errorf("got %s, want %s", got.Digest, want)
	}
	if err := remote.Delete(tag.Digest(got.Digest.String())); err != nil {
		t.Errorf("delete: %v", err)
	}
	if _, err := remote.Get(tag); err == nil {
		t.Error("the tag is still there after its image was deleted")
	}
}
