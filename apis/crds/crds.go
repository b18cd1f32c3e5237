// Package crds holds the CustomResourceDefinitions that xpkg installs: its own,
// generated from the Go types of this repository, and permissive ones for the
// kinds of composition engines.
package crds

import (
	"embed"
	"fmt"
	"path"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	packagesv1alpha1 "github.com/xpkg-dev/xpkg/apis/packages/v1alpha1"
)

// LabelPermissive with the value "true" marks the CRDs of Composition. A CRD without it
// belongs to a composition engine and is never changed.
const LabelPermissive = "xpkg.dev/permissive"

// LabelPackageAPI with the value "true" marks the CRDs that the manager owns, so that one call reads all of them.
const LabelPackageAPI = "xpkg.dev/package-api"

//go:embed *.yaml
var packages embed.FS

//go:embed composition/*.yaml
var composition embed.FS

//go:embed firstgeneration/*.yaml
var firstGeneration embed.FS

// Packages returns the CRDs of the group pkg.crossplane.io, ordered by name. The objects
// are new with each call.
func Packages() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	return own(read(packages, "."))
}

// Composition returns permissive CRDs of the kinds that configuration packages install,
// ordered by name: the kinds of the groups apiextensions, ops and protection of
// crossplane.io. They keep any spec and status without validation, for clusters without a
// composition engine. The objects are new with each call.
func Composition() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	return read(composition, "composition")
}

// FirstGeneration returns the CRDs of the group packages.crossplane.io, ordered by name: the install objects and
// records of the first generation of packages. The objects are new with each call.
func FirstGeneration() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	return own(read(firstGeneration, "firstgeneration"))
}

// EarlierStackDefinition returns the CRD of StackDefinitions in the group stacks.crossplane.io, in which templating
// controllers before version 0.4.0 read them. The object is new with each call.
func EarlierStackDefinition() (*apiextensionsv1.CustomResourceDefinition, error) {
	all, err := read(firstGeneration, "firstgeneration")
	if err != nil {
		return nil, err
	}
	for _, crd := range all {
		if crd.Spec.Names.Kind == packagesv1alpha1.StackDefinitionKind {
			crd.Spec.Group = packagesv1alpha1.EarlierGroup
			crd.Name = crd.Spec.Names.Plural + "." + crd.Spec.Group
			return crd, nil
		}
	}
	return nil, fmt.Errorf("there is no CRD of the kind %s", packagesv1alpha1.StackDefinitionKind)
}

// own labels CRDs as those of the manager.
func own(
	all []*apiextensionsv1.CustomResourceDefinition, err error,
) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	for _, crd := range all {
		metav1.SetMetaDataLabel(&crd.ObjectMeta, LabelPackageAPI, "true")
	}
	return all, err
}

func read(files embed.FS, dir string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	entries, err := files.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	out := make([]*apiextensionsv1.CustomResourceDefinition, 0, len(entries))
	for _, e := range entries {
		b, err := files.ReadFile(path.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(b, crd); err != nil {
			return nil, fmt.Errorf("%s: %w", e.Name(), err)
		}
		out = append(out, crd)
	}
	return out, nil
}
