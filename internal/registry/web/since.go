package web

import (
	"encoding/json"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/xpkg-dev/xpkg/internal/registry/web/fields"
)

// A TaggedCRD is the CRD of a kind in one version of a package; empty if the version does not have the kind.
type TaggedCRD struct {
	Tag string
	CRD []byte
}

// FieldsSince returns for each field of an API version the first version of the package since which it has existed. The
// CRDs are those of all versions of the package in ascending order, up to the one that is shown. A view uses it for its
// method Since.
func FieldsSince(crds []TaggedCRD, apiVersion string) (map[string]string, error) {
	versions := make([]fields.Version, 0, len(crds))
	for i, c := range crds {
		if i > 0 && len(c.CRD) > 0 && string(c.CRD) == string(crds[i-1].CRD) {
			versions = append(versions, fields.Version{Tag: c.Tag, Paths: versions[i-1].Paths})
			continue
		}
		paths, err := pathsOf(c.CRD, apiVersion)
		if err != nil {
			return nil, err
		}
		versions = append(versions, fields.Version{Tag: c.Tag, Paths: paths})
	}
	return fields.Since(versions), nil
}

// pathsOf returns the paths of the fields of an API version; nil if the CRD does not have it.
func pathsOf(text []byte, apiVersion string) (map[string]bool, error) {
	if len(text) == 0 {
		return nil, nil
	}
	var d definition
	if err := json.Unmarshal(text, &d.crd); err != nil {
		return nil, err
	}
	var version *apiextensionsv1.CustomResourceDefinitionVersion
	if version = d.version(apiVersion); version == nil {
		return nil, nil
	}
	tree := fields.Tree(versionSchema(version))
	return fields.Paths(&tree), nil
}
