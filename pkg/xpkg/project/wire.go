package project

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xpkg-dev/xpkg/pkg/xpkg/internal/typed"
)

// wire is a Project of any API version.
type wire[Spec any] struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        metav1.ObjectMeta `json:"metadata"`
	Spec            Spec              `json:"spec"`
}

// common are the fields that all API versions have.
type common struct {
	Maintainer    string      `json:"maintainer"`
	Source        string      `json:"source"`
	License       string      `json:"license"`
	Description   string      `json:"description"`
	Readme        string      `json:"readme"`
	Repository    string      `json:"repository"`
	Crossplane    *crossplane `json:"crossplane"`
	Architectures []string    `json:"architectures"`
}

type crossplane struct {
	Version string `json:"version"`
}

// crossplaneSpec is the spec of dev.crossplane.io/v1alpha1.
type crossplaneSpec struct {
	common
	Paths        wirePaths         `json:"paths"`
	Dependencies []wireDependency  `json:"dependencies"`
	Functions    []wireFunction    `json:"functions"`
	Schemas      wireSchemas       `json:"schemas"`
	ImageConfigs []wireImageConfig `json:"imageConfigs"`
}

type wirePaths struct {
	APIs       string `json:"apis"`
	Functions  string `json:"functions"`
	Examples   string `json:"examples"`
	Tests      string `json:"tests"`
	Operations string `json:"operations"`
	Schemas    string `json:"schemas"`
}

type wireDependency struct {
	Type string    `json:"type"`
	Xpkg *wireXpkg `json:"xpkg"`
	wireSchemaSource
}

type wireXpkg struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Package    string `json:"package"`
	Version    string `json:"version"`
	APIOnly    bool   `json:"apiOnly"`
}

type wireSchemaSource struct {
	Git *struct {
		Repository string `json:"repository"`
		Ref        string `json:"ref"`
		Path       string `json:"path"`
	} `json:"git"`
	HTTP *struct {
		URL string `json:"url"`
	} `json:"http"`
	K8s *struct {
		Version string `json:"version"`
	} `json:"k8s"`
}

// count returns the number of sources.
func (s wireSchemaSource) count() int {
	n := 0
	for _, given := range []bool{s.Git != nil, s.HTTP != nil, s.K8s != nil} {
		if given {
			n++
		}
	}
	return n
}

type wireFunction struct {
	Source    string `json:"source"`
	Directory *struct {
		Name string `json:"name"`
	} `json:"directory"`
	Tarball *struct {
		Name       string `json:"name"`
		PathPrefix string `json:"pathPrefix"`
	} `json:"tarball"`
}

type wireSchemas struct {
	Languages []string `json:"languages"`
}

// wireImageConfig is an ImageConfig of pkg.crossplane.io. Its other fields have no effect on an author's machine.
type wireImageConfig struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        metav1.ObjectMeta `json:"metadata"`
	Spec            struct {
		imageRewrite
		Registry     json.RawMessage `json:"registry"`
		Verification json.RawMessage `json:"verification"`
		Runtime      json.RawMessage `json:"runtime"`
	} `json:"spec"`
	Status json.RawMessage `json:"status"`
}

type imageRewrite struct {
	MatchImages []struct {
		Type   string `json:"type"`
		Prefix string `json:"prefix"`
	} `json:"matchImages"`
	RewriteImage struct {
		Prefix string `json:"prefix"`
	} `json:"rewriteImage"`
}

// upboundSpec is the spec of meta.dev.upbound.io.
type upboundSpec[Paths any] struct {
	common
	Paths              Paths                  `json:"paths"`
	AdditionalMetadata map[string]string      `json:"additionalMetadata"`
	DependsOn          []packageDependency    `json:"dependsOn"`
	APIDependencies    []wireSchemaDependency `json:"apiDependencies"`
	ImageConfig        []imageRewrite         `json:"imageConfig"`
}

// packageDependency is a dependency of meta.pkg.crossplane.io/v1.
type packageDependency struct {
	APIVersion    string `json:"apiVersion,omitempty"`
	Kind          string `json:"kind,omitempty"`
	Package       string `json:"package,omitempty"`
	Provider      string `json:"provider,omitempty"`
	Configuration string `json:"configuration,omitempty"`
	Function      string `json:"function,omitempty"`
	Version       string `json:"version,omitempty"`
}

type wireSchemaDependency struct {
	Type string `json:"type"`
	wireSchemaSource
}

type upboundPathsV1 struct {
	APIs      string `json:"apis"`
	Functions string `json:"functions"`
	Examples  string `json:"examples"`
	Tests     string `json:"tests"`
}

type upboundPathsV2 struct {
	upboundPathsV1
	Operations string `json:"operations"`
}

var (
	crossplaneShape = typed.ShapeOf[wire[crossplaneSpec]]()
	upboundShapeV1  = typed.ShapeOf[wire[upboundSpec[upboundPathsV1]]]()
	upboundShapeV2  = typed.ShapeOf[wire[upboundSpec[upboundPathsV2]]]()
)
