package firstgen

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// Behavior is the content of behavior.yaml: a controller that renders templates for each object of a kind.
type Behavior struct {
	// Source is the location of the templates.
	Source struct {
		// Image contains the templates; the image of the package if it is empty.
		Image string `json:"image,omitempty"`
		// Path is the folder of the templates in the image, absolute or below the working directory of the image.
		Path string `json:"path"`
	} `json:"source"`
	// CRD is the kind whose objects are rendered.
	CRD struct {
		Kind       string `json:"kind"`
		APIVersion string `json:"apiVersion"`
	} `json:"crd"`
	// Engine renders the templates.
	Engine struct {
		// Type is the name of the engine, such as helm3 or kustomize.
		Type string `json:"type"`
		// ControllerImage runs the engine; the default of the package manager if it is empty.
		ControllerImage string `json:"controllerImage,omitempty"`
		// Kustomize configures the engine kustomize.
		Kustomize map[string]any `json:"kustomize,omitempty"`
	} `json:"engine"`
}

// readBehavior reads behavior.yaml; it returns nil after reporting why the file is invalid.
func (r *reader) readBehavior(f file) *Behavior {
	b := &Behavior{}
	if !r.decode(f, ErrInvalidBehavior, b) {
		return nil
	}
	if err := b.validate(); err != nil {
		r.report(xpkg.Error, ErrInvalidBehavior, f.path, 0, "%s", err)
		return nil
	}
	b.Source.Path = path.Clean(b.Source.Path)
	return b
}

func (b *Behavior) validate() error {
	for _, field := range []struct{ name, value string }{
		{"source.path", b.Source.Path}, {"crd.kind", b.CRD.Kind}, {"crd.apiVersion", b.CRD.APIVersion},
		{"engine.type", b.Engine.Type},
	} {
		if field.value == "" {
			return fmt.Errorf("%s is missing", field.name)
		}
	}
	if p := path.Clean(b.Source.Path); p == "." || p == "/" {
		return fmt.Errorf("source.path is %.100q, want a folder of the image", b.Source.Path)
	}
	if gv, err := schema.ParseGroupVersion(b.CRD.APIVersion); err != nil || !isDNSSubdomain(gv.Group) ||
		!isDNSLabel(gv.Version) {
		return fmt.Errorf("crd.apiVersion is %.100q, want GROUP/VERSION", b.CRD.APIVersion)
	}
	for _, image := range []string{b.Source.Image, b.Engine.ControllerImage} {
		if _, err := oci.ParseReference(image, oci.ParseOptions{
			DefaultRegistry: "docker.io", AllowUntagged: true,
		}); image != "" && err != nil {
			return fmt.Errorf("%.100q is not the reference of an image", image)
		}
	}
	return nil
}

// checkBehavior reports templates for a kind that the package does not define.
func (r *reader) checkBehavior(pkg *Package) {
	b := pkg.Behavior
	if b == nil {
		return
	}
	defined := slices.ContainsFunc(
		pkg.OwnedKinds(), func(k metav1.TypeMeta) bool { return k.Kind == b.CRD.Kind && k.APIVersion == b.CRD.APIVersion },
	)
	if !defined {
		r.report(
			xpkg.Warning, ErrInvalidBehavior, behaviorFile, 0, "crd names %s of %s, which the package does not define",
			b.CRD.Kind, b.CRD.APIVersion,
		)
	}
}

// Templating is the templating controller of a package, as the metadata of the converted package contains it: no
// configuration of a runtime can express it, because an init container copies the templates.
type Templating struct {
	Behavior
	// DependsOn are the CRDs of app.yaml, in the form of [CRDReference]: the kinds of objects that the templates create.
	DependsOn []string `json:"dependsOn,omitempty"`
}

// maxTemplating is the size limit of the annotation of a Templating in bytes.
const maxTemplating = 64 << 10

// templatingOf returns the templating controller of a package, or nil if the package has none.
func templatingOf(p *Package) *Templating {
	if p.Behavior == nil || p.Install != nil {
		return nil
	}
	t := &Templating{Behavior: *p.Behavior}
	for _, ref := range p.App.DependsOn {
		t.DependsOn = append(t.DependsOn, ref.String())
	}
	return t
}

// encode returns the value of the annotation.
func (t *Templating) encode() (string, error) {
	text, err := json.Marshal(t)
	if err == nil && len(text) > maxTemplating {
		err = ErrInvalidBehavior.New(
			nil, "the templating controller has %d bytes, at most %d are allowed", len(text), maxTemplating,
		)
	}
	return string(text), err
}

// ParseTemplating returns the templating controller in the annotations of a package's metadata, or nil if it has none.
// It fails with InvalidBehavior.
func ParseTemplating(annotations map[string]string) (*Templating, error) {
	text, ok := annotations[xpkg.AnnotationTemplating]
	if !ok {
		return nil, nil
	}
	if len(text) > maxTemplating {
		return nil, ErrInvalidBehavior.New(
			nil, "the annotation %s has %d bytes, at most %d are allowed", xpkg.AnnotationTemplating, len(text), maxTemplating,
		)
	}
	t := &Templating{}
	unknown, err := kjson.UnmarshalStrict([]byte(text), t)
	if err == nil && len(unknown) > 0 {
		err = unknown[0]
	}
	if err == nil {
		err = t.validate()
	}
	for _, crd := range t.DependsOn {
		if _, ok := ParseCRDReference(crd); !ok && err == nil {
			err = fmt.Errorf("dependsOn contains %.100q, want PLURAL.GROUP/VERSION", crd)
		}
	}
	if err != nil {
		return nil, ErrInvalidBehavior.New(err, "cannot use the annotation %s", xpkg.AnnotationTemplating)
	}
	return t, nil
}
