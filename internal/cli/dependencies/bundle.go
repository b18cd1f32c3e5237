package dependencies

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/bootstrap"
	"github.com/xpkg-dev/xpkg/internal/bundle"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/cli/view"
	"github.com/xpkg-dev/xpkg/internal/origin"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// BundleCmd implements `xpkg bundle`.
type BundleCmd struct {
	Save bundleSaveCmd `cmd:"" help:"Write packages, their dependencies and everything that belongs to them into one file."`
	Load bundleLoadCmd `cmd:"" help:"Copy a bundle to a registry, and print ImageConfigs for clusters that use it."`
}

// parsePrefix returns the canonical form of a registry, or of a prefix within one.
func parsePrefix(s string) (string, error) {
	const any = "/any"
	ref, err := oci.ParseReference(strings.TrimSuffix(s, "/")+any, oci.ParseOptions{AllowUntagged: true})
	if err != nil || ref.Tag != "" || !ref.Digest.IsZero() {
		return "", terminal.ErrUsage.New(err, "%q is neither REGISTRY nor REGISTRY/PREFIX", s)
	}
	return strings.TrimSuffix(ref.Name(), any), nil
}

// rewriteConfigs returns the ImageConfigs that make a cluster pull the content of a bundle from a prefix, one for each
// registry.
func rewriteConfigs(entries []bundle.Entry, prefix string) []v1beta1.ImageConfig {
	registries := map[string]bool{}
	for _, e := range entries {
		registries[e.Ref.Registry] = true
	}
	var out []v1beta1.ImageConfig
	for _, registry := range slices.Sorted(maps.Keys(registries)) {
		out = append(out, newImageConfig("bundle-"+cmp.Or(oci.ToDNSLabel(registry), "packages"), v1beta1.ImageConfigSpec{
			MatchImages:  []v1beta1.ImageMatch{{Type: v1beta1.Prefix, Prefix: registry}},
			RewriteImage: &v1beta1.ImageRewrite{Prefix: bundle.UnderRegistry(registry, prefix)},
		}))
	}
	return out
}

func newImageConfig(name string, spec v1beta1.ImageConfigSpec) v1beta1.ImageConfig {
	return v1beta1.ImageConfig{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1beta1.GroupVersion.String(), Kind: "ImageConfig"},
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec,
	}
}

// verificationConfigs returns the parts of ImageConfigs that require signatures, in YAML, with the Secrets that they
// name: public keys and trust roots. They match the original names of images, and apply wherever these are pulled from.
// Missing are the Secrets that the files do not contain.
func verificationConfigs(files origin.Files) (text []byte, missing []string, err error) {
	var out origin.Files
	named := map[string][]string{}
	for _, c := range files.Configs {
		if c.Spec.Verification == nil {
			continue
		}
		out.Configs = append(out.Configs, newImageConfig(c.Name, v1beta1.ImageConfigSpec{
			MatchImages: c.Spec.MatchImages, Verification: c.Spec.Verification,
		}))
		for _, s := range secretsOf(c.Spec.Verification) {
			named[s.Name] = append(named[s.Name], s.Key)
		}
	}
	if len(out.Configs) == 0 {
		return nil, nil, nil
	}
	for _, name := range slices.Sorted(maps.Keys(named)) {
		at := slices.IndexFunc(files.Secrets, func(s corev1.Secret) bool { return s.Name == name })
		if at < 0 {
			missing = append(missing, name)
			continue
		}
		out.Secrets = append(out.Secrets, onlyKeys(files.Secrets[at], named[name]))
	}
	slices.SortFunc(out.Configs, func(a, b v1beta1.ImageConfig) int { return cmp.Compare(a.Name, b.Name) })
	objects, err := plainFiles(out)
	if err != nil {
		return nil, nil, err
	}
	var written bytes.Buffer
	err = view.PrintManifests(&written, "", objects)
	return written.Bytes(), missing, err
}

// secretsOf returns the values of Secrets with the keys and the trust root of a requirement.
func secretsOf(v *v1beta1.ImageVerification) []v1beta1.SecretKeySelector {
	if v.Cosign == nil {
		return nil
	}
	var out []v1beta1.SecretKeySelector
	if r := v.Cosign.TrustedRoot; r != nil {
		out = append(out, r.SecretRef)
	}
	for _, a := range v.Cosign.Authorities {
		if a.Key != nil {
			out = append(out, a.Key.SecretRef)
		}
	}
	return out
}

// onlyKeys returns a Secret with some of its values, in the namespace of the manager unless it has another one.
func onlyKeys(s corev1.Secret, keys []string) corev1.Secret {
	out := corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Name: s.Name, Namespace: cmp.Or(s.Namespace, bootstrap.DefaultNamespace)},
		StringData: map[string]string{},
	}
	for _, key := range keys {
		if value, ok := s.StringData[key]; ok {
			out.StringData[key] = value
		} else {
			out.StringData[key] = string(s.Data[key])
		}
	}
	return out
}

// plainFiles returns the Secrets and then the ImageConfigs of files, which need them.
func plainFiles(files origin.Files) ([]map[string]any, error) {
	var objects []client.Object
	for i := range files.Secrets {
		objects = append(objects, &files.Secrets[i])
	}
	for i := range files.Configs {
		objects = append(objects, &files.Configs[i])
	}
	var out []map[string]any
	for _, o := range objects {
		plain, err := bootstrap.Plain(o)
		if err != nil {
			return nil, err
		}
		out = append(out, plain)
	}
	return out, nil
}
