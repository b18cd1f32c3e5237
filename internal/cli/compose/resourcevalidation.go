package compose

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/crdvalidation"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/check"
)

// resourceValidation is the state of a validation.
type resourceValidation struct {
	schemas      crdvalidation.Schemas
	functions    []knownFunction
	allowUnknown bool
	findings     []xpkg.Finding
	// invalid, unchecked and unknown are numbers of resources.
	invalid, unchecked, unknown int
}

// resource is a document, or an item of a List.
type resource struct {
	doc xpkg.Document
	// path is the path of an item of a List, or "".
	path   string
	kind   schema.GroupVersionKind
	name   string
	object map[string]any
}

func (v *resourceValidation) addPackage(p *xpkg.Package, source string) error {
	for _, o := range p.Objects {
		text, err := o.JSON()
		if err == nil {
			err = v.addDefinition(o.GVK, text, source)
		}
		if err != nil {
			return ErrInvalidResource.New(err, "cannot read %s %s of %s", o.GVK.Kind, o.Name, source)
		}
	}
	return nil
}

// addDefinition adds the schemas of a CRD or an XRD. It ignores other objects.
func (v *resourceValidation) addDefinition(kind schema.GroupVersionKind, text []byte, source string) error {
	switch kind.GroupKind() {
	case schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:
		return v.schemas.AddCRD(text, source)
	case compositeDefinition,
		schema.GroupKind{Group: "apiextensions.crossplane.io", Kind: "ManagedResourceDefinition"}:
		return v.schemas.AddXRD(text, source)
	}
	return nil
}

// read returns the resources of documents, and adds the schemas of CRDs and XRDs among them.
func (v *resourceValidation) read(docs []xpkg.Document) []resource {
	var out []resource
	for _, doc := range docs {
		var object map[string]any
		if err := doc.Decode(&object); err != nil {
			found := xpkg.Findings(err)
			if found == nil {
				found = []xpkg.Finding{doc.Finding(ErrInvalidResource, 0, err.Error())}
			}
			v.findings = append(v.findings, found...)
			continue
		}
		out = append(out, v.resources(doc, "", object)...)
	}
	return out
}

// resources returns the resource in an object, or those in a List.
func (v *resourceValidation) resources(doc xpkg.Document, path string, object map[string]any) []resource {
	gvk := kindOf(object)
	items, isList := object["items"].([]any)
	if isList && strings.HasSuffix(gvk.Kind, "List") {
		var out []resource
		for i, item := range items {
			if o, ok := item.(map[string]any); ok {
				out = append(out, v.resources(doc, fmt.Sprintf("%sitems[%d].", path, i), o)...)
			}
		}
		return out
	}
	r := resource{doc: doc, path: path, kind: gvk, object: object}
	if meta, ok := object["metadata"].(map[string]any); ok {
		r.name, _ = meta["name"].(string)
	}
	if text, err := doc.JSON(); err == nil && path == "" {
		if err := v.addDefinition(r.kind, text, doc.File); err != nil {
			v.report(r, ErrInvalidResource, "", err.Error())
		}
	}
	return []resource{r}
}

// maxProblems limits the reported problems of one resource.
const maxProblems = 20

func (v *resourceValidation) validate(env *terminal.Env, r resource) {
	switch {
	case r.kind.Kind == "" || r.kind.Version == "":
		v.report(r, ErrInvalidResource, "", "apiVersion and kind are required")
		v.invalid++
	case r.kind.GroupKind() == compositionKind:
		v.validateComposition(r)
	case r.kind.Kind == "CustomResourceDefinition" && r.path == "":
		text, _ := r.doc.JSON() // was read before
		v.reportAll(r, crdvalidation.ValidateCRD(text))
	case v.schemas.Has(r.kind):
		v.reportAll(r, v.schemas.Validate(env.Context, r.object))
	case isCoreKind(r.kind.Group):
		v.unchecked++
	default:
		v.unknown++
		v.report(r, ErrKindWithoutSchema, "apiVersion", v.unknownKind(r.kind))
	}
}

func (v *resourceValidation) reportAll(r resource, problems []check.Problem) {
	if len(problems) > 0 {
		v.invalid++
	}
	for i, p := range problems {
		if i == maxProblems {
			v.report(r, ErrInvalidResource, "", fmt.Sprintf("%d more problems", len(problems)-maxProblems))
			return
		}
		v.report(r, ErrInvalidResource, p.Path, p.Message)
	}
}

// report adds a finding about a field of a resource.
func (v *resourceValidation) report(r resource, code errcode.Code, path, message string) {
	path = r.path + path
	if path != "" && code.Name == ErrInvalidResource.Name {
		message = strings.TrimSuffix(path, ".") + ": " + message
	}
	f := r.doc.Finding(code, r.doc.FieldLine(path), message)
	f.Kind, f.Name = r.kind.Kind, r.name
	if v.allowUnknown && (code.Name == ErrKindWithoutSchema.Name || code.Name == ErrFunctionUnknown.Name) {
		f.Severity = xpkg.Warning
	}
	v.findings = append(v.findings, f)
}

// unknownKind describes a kind without a schema, and the kinds that it might stand for.
func (v *resourceValidation) unknownKind(kind schema.GroupVersionKind) string {
	text := fmt.Sprintf("no package defines %s of %s", kind.Kind, kind.GroupVersion())
	similar := v.schemas.Similar(kind)
	if len(similar) == 0 {
		return text
	}
	var names []string
	for _, k := range similar[:min(3, len(similar))] {
		names = append(names, fmt.Sprintf("%s of %s (%s)", k.Kind, k.GroupVersion(), v.schemas.Source(k)))
	}
	return text + "; similar: " + strings.Join(names, ", ")
}

// isCoreKind reports whether a group belongs to Kubernetes or to Crossplane itself, whose schemas no package contains.
func isCoreKind(group string) bool {
	return slices.Contains([]string{"", "apps", "autoscaling", "batch", "policy"}, group) ||
		strings.HasSuffix(group, ".k8s.io") ||
		slices.Contains(
			[]string{"apiextensions.crossplane.io", "meta.pkg.crossplane.io", "ops.crossplane.io", "protection.crossplane.io"},
			group,
		)
}

// summary counts the resources: "5 resources: 3 valid, 1 not valid, 1 of Kubernetes or Crossplane not checked".
func (v *resourceValidation) summary(all int) string {
	parts := []string{fmt.Sprintf("%d valid", max(0, all-v.invalid-v.unchecked-v.unknown))}
	for _, part := range []struct {
		number int
		text   string
	}{
		{v.invalid, "not valid"}, {v.unknown, "of unknown kinds"},
		{v.unchecked, "of Kubernetes or Crossplane itself not checked"},
	} {
		if part.number > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.number, part.text))
		}
	}
	return wording.Count(all, "resource") + ": " + strings.Join(parts, ", ")
}
