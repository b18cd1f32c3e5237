package dependencies

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/bootstrap"
	"github.com/xpkg-dev/xpkg/internal/bundle"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/cli/view"
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

// verificationConfigs returns the parts of ImageConfigs that require signatures, in YAML: they match the original names
// of images, and apply wherever these are pulled from.
func verificationConfigs(configs []v1beta1.ImageConfig) ([]byte, error) {
	var out []v1beta1.ImageConfig
	for _, c := range configs {
		if c.Spec.Verification != nil {
			out = append(out, newImageConfig(c.Name, v1beta1.ImageConfigSpec{
				MatchImages: c.Spec.MatchImages, Verification: c.Spec.Verification,
			}))
		}
	}
	if len(out) == 0 {
		return nil, nil
	}
	slices.SortFunc(out, func(a, b v1beta1.ImageConfig) int { return cmp.Compare(a.Name, b.Name) })
	objects, err := plainConfigs(out)
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	err = view.PrintManifests(&text, "", objects)
	return text.Bytes(), err
}

func plainConfigs(configs []v1beta1.ImageConfig) ([]map[string]any, error) {
	var out []map[string]any
	for i := range configs {
		plain, err := bootstrap.Plain(&configs[i])
		if err != nil {
			return nil, err
		}
		out = append(out, plain)
	}
	return out, nil
}
