package origin

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/imageconfig"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// Files are ImageConfigs without a cluster, with the Secrets that their requirements for signatures name.
type Files struct {
	Configs []v1beta1.ImageConfig
	Secrets []corev1.Secret
}

// Find returns the origin of an image. It uses the credentials of this machine instead of pull secrets. It fails as
// [Finder.Find] does.
func (f Files) Find(ref oci.Reference) (fetch.Origin, error) {
	route, err := imageconfig.Choose(ref.String(), nil, f.Configs)
	if err != nil {
		return fetch.Origin{}, err
	}
	for i := range route.Sources {
		route.Sources[i].PullSecrets = nil
	}
	return Finder{Secrets: secretFiles(f.Secrets)}.origin(ref.String(), route)
}

// secretFiles reads secrets, of any namespace, by their names.
type secretFiles []corev1.Secret

// Get implements client.Reader.
func (f secretFiles) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	for i := range f {
		into, ok := o.(*corev1.Secret)
		if !ok || f[i].Name != key.Name {
			continue
		}
		f[i].DeepCopyInto(into)
		for name, value := range f[i].StringData {
			if into.Data == nil {
				into.Data = map[string][]byte{}
			}
			into.Data[name] = []byte(value)
		}
		return nil
	}
	return apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, key.Name)
}

// List implements client.Reader. It lists nothing.
func (secretFiles) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	return fmt.Errorf("files do not list %T", list)
}
