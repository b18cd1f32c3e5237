package processruntime

import (
	"context"
	"path"

	corev1 "k8s.io/api/core/v1"

	"github.com/xpkg-dev/xpkg/internal/runtime/manifests"
)

// volumes returns the files of the volumes by their path. It fails with missing if an
// object does not exist yet.
func (p *Runtime) volumes(ctx context.Context, pod corev1.PodSpec) (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, v := range pod.Volumes {
		for _, m := range pod.Containers[0].VolumeMounts {
			if m.Name != v.Name {
				continue
			}
			content, err := p.content(ctx, v)
			if err != nil {
				return nil, err
			}
			for name, data := range content {
				switch {
				case m.SubPath == "":
					files[path.Join(m.MountPath, name)] = data
				case path.Clean(m.SubPath) == path.Clean(name):
					files[path.Clean(m.MountPath)] = data
				}
			}
		}
	}
	return files, nil
}

// content returns the files of a volume by their paths in the volume. It fails with missing if the
// Secret or ConfigMap, or one of its keys, does not exist yet and is not optional.
func (p *Runtime) content(ctx context.Context, v corev1.Volume) (map[string][]byte, error) {
	var name string
	var items []corev1.KeyToPath
	var optional *bool
	var read reading
	switch {
	case v.Secret != nil:
		name, items, optional, read = v.Secret.SecretName, v.Secret.Items, v.Secret.Optional, p.secret
	case v.ConfigMap != nil:
		name, items, optional, read = v.ConfigMap.Name, v.ConfigMap.Items, v.ConfigMap.Optional, p.configMap
	default:
		return nil, nil
	}
	values, found, err := read(ctx, name)
	if err != nil {
		return nil, err
	}
	may := optional != nil && *optional
	if !found && !may {
		return nil, missing("the volume " + v.Name + " needs " + name + ", which does not exist yet")
	}
	if items == nil {
		for key := range values {
			items = append(items, corev1.KeyToPath{Key: key, Path: key})
		}
	}
	files := map[string][]byte{}
	for _, item := range items {
		value, ok := values[item.Key]
		if (!ok || value == "" && isCertificate(item.Key)) && !may {
			return nil,
				missing("the volume " + v.Name + " needs the key " + item.Key + " of " + name + ", which does not exist yet")
		}
		files[item.Path] = []byte(value)
	}
	return files, nil
}

// isCertificate reports whether the issuer of certificates writes the value of a key, possibly
// after the Secret was created.
func isCertificate(key string) bool {
	return key == corev1.TLSCertKey || key == corev1.TLSPrivateKeyKey || key == manifests.AuthorityKey
}
