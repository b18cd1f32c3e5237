// Package comptest contains tests of compositions: it reads them, compares what a composition renders with what they
// assert, and finds what they do not exercise.
//
// The format is the CompositionTest of `up test`.
package comptest

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	kjson "sigs.k8s.io/json"

	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

const (
	group      = "meta.dev.upbound.io/"
	apiVersion = group + "v1alpha1"
	kind       = "CompositionTest"

	defaultTimeout = 30 * time.Second
)

// Case is one test of a composition.
type Case struct {
	Name string
	// File and Line are its place.
	File string
	Line int
	// Skipped is the reason why it is not run, or empty.
	Skipped string
	Spec
}

// Timeout is the time in which the functions must answer.
func (c Case) Timeout() time.Duration {
	if c.TimeoutSeconds == nil {
		return defaultTimeout
	}
	return time.Duration(*c.TimeoutSeconds) * time.Second
}

// Spec is what a test renders and asserts. Paths are relative to the folder of the package. Of an object and its path,
// at most one is set; without both, a composition and a definition are those of the package.
type Spec struct {
	XR              map[string]any `json:"xr"`
	XRPath          string         `json:"xrPath"`
	XRD             map[string]any `json:"xrd"`
	XRDPath         string         `json:"xrdPath"`
	Composition     map[string]any `json:"composition"`
	CompositionPath string         `json:"compositionPath"`

	ObservedResources       []map[string]any `json:"observedResources"`
	ExtraResources          []map[string]any `json:"extraResources"`
	Context                 Context          `json:"context"`
	FunctionCredentialsPath string           `json:"functionCredentialsPath"`

	// AssertResources are parts of objects that must be rendered.
	AssertResources []map[string]any `json:"assertResources"`
	// AbsentResources are parts of objects that must not be rendered. `up test` does not know the field.
	AbsentResources []map[string]any `json:"absentResources"`

	TimeoutSeconds *int `json:"timeoutSeconds"`
	// Validate requires that the rendered resources are valid.
	Validate bool `json:"validate"`
}

// fields are the names of the fields of Spec, for messages.
const fields = "xr, xrPath, xrd, xrdPath, composition, compositionPath, observedResources, extraResources, context, " +
	"functionCredentialsPath, assertResources, absentResources, timeoutSeconds and validate"

// Context is the context of the first function. It is an object, or as in former versions a list of objects.
type Context map[string]any

// UnmarshalJSON decodes an object or a list.
func (c *Context) UnmarshalJSON(text []byte) error {
	var list []map[string]any
	if strings.HasPrefix(string(text), "[") {
		if err := kjson.UnmarshalCaseSensitivePreserveInts(text, &list); err != nil {
			return err
		}
	} else {
		var one map[string]any
		if err := kjson.UnmarshalCaseSensitivePreserveInts(text, &one); err != nil {
			return err
		}
		list = append(list, one)
	}
	*c = Context{}
	for _, one := range list {
		for key, value := range one {
			(*c)[key] = value
		}
	}
	return nil
}

// header is what all kinds have in common.
type header struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Items []any `json:"items"`
}

// Read returns the tests in a document: one, those of a list, or none if the document is something else. It fails with
// TestInvalid.
func Read(doc xpkg.Document) ([]Case, error) {
	text, err := doc.JSON()
	if err != nil {
		return nil, err
	}
	return read(doc, text)
}

func read(doc xpkg.Document, text []byte) ([]Case, error) {
	var h header
	if kjson.UnmarshalCaseSensitivePreserveInts(text, &h) != nil {
		return nil, nil // The document is no object of a known form.
	}
	if h.Kind == "" && len(h.Items) > 0 || h.Kind == kind+"List" {
		return readItems(doc, h.Items)
	}
	if !strings.HasPrefix(h.APIVersion, group) {
		return nil, nil
	}
	c := Case{Name: h.Metadata.Name, File: doc.File, Line: doc.Line}
	refuse := func(do, format string, args ...any) ([]Case, error) {
		e := ErrTestInvalid.New(nil, "%s:%d: "+format, append([]any{doc.File, doc.Line}, args...)...)
		if do != "" {
			e = e.WithDo("%s", do)
		}
		return nil, e
	}
	switch {
	case h.Kind == "E2ETest":
		c.Skipped = "an E2ETest needs a control plane"
		return []Case{c}, nil
	case h.Kind == "OperationTest":
		c.Skipped = "xpkg does not render Operations"
		return []Case{c}, nil
	case h.Kind != kind:
		return nil, nil // such as a Project
	case h.APIVersion != apiVersion:
		return refuse("Set apiVersion to "+apiVersion+".", "%s of %s is not known", kind, h.APIVersion)
	}
	if problems := validation.IsDNS1123Subdomain(h.Metadata.Name); len(problems) > 0 {
		return refuse("Set metadata.name to a name in lower case, such as defaults.",
			"the test has no valid name: %.80q", h.Metadata.Name)
	}
	var o struct {
		metav1.TypeMeta `json:",inline"`
		Metadata        map[string]any `json:"metadata"`
		Spec            Spec           `json:"spec"`
	}
	strict, err := kjson.UnmarshalStrict(text, &o)
	switch {
	case err != nil:
		return refuse("", "the test %s cannot be read: %v", c.Name, err)
	case len(strict) > 0:
		return refuse("Correct or remove the field. The fields of spec are "+fields+".", "the test %s has an %v", c.Name,
			strict[0])
	}
	c.Spec = o.Spec
	if do, problem := c.problem(); problem != "" {
		return refuse(do, "the test %s %s", c.Name, problem)
	}
	return []Case{c}, nil
}

func readItems(doc xpkg.Document, items []any) ([]Case, error) {
	var out []Case
	for _, item := range items {
		text, err := json.Marshal(item)
		if err != nil {
			return nil, err
		}
		more, err := read(doc, text)
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	return out, nil
}

// problem returns what is wrong with a test, and what to do.
func (c Case) problem() (do, problem string) {
	for _, one := range []struct {
		name   string
		object map[string]any
		path   string
	}{
		{"xr", c.XR, c.XRPath}, {"xrd", c.XRD, c.XRDPath}, {"composition", c.Composition, c.CompositionPath},
	} {
		if one.object != nil && one.path != "" {
			return "Remove one of them.", fmt.Sprintf("has spec.%s and spec.%sPath", one.name, one.name)
		}
	}
	switch {
	case c.XR == nil && c.XRPath == "":
		return "Set spec.xr to the composite resource, or spec.xrPath to its file.", "has no composite resource"
	case c.TimeoutSeconds != nil && *c.TimeoutSeconds < 1:
		return "Set a number of at least 1.", "has a spec.timeoutSeconds below 1"
	}
	for field, list := range map[string][]map[string]any{
		"assertResources": c.AssertResources, "absentResources": c.AbsentResources,
	} {
		for i, o := range list {
			at := fmt.Sprintf("spec.%s[%d]", field, i)
			if text(o, "apiVersion") == "" || text(o, "kind") == "" {
				return "Name the kind of the resource.", fmt.Sprintf("has no apiVersion or no kind in %s", at)
			}
			if found := expression(o, at); found != "" {
				return "Write the value itself: xpkg does not evaluate expressions of assertions.",
					fmt.Sprintf("has the expression %s", found)
			}
		}
	}
	return "", ""
}

// expression returns the place and the text of an expression in an assertion, or "": a key or a value in parentheses,
// and a key with a modifier.
func expression(value any, at string) string {
	switch v := value.(type) {
	case map[string]any:
		for _, key := range sortedKeys(v) {
			if isExpression(key) || strings.HasPrefix(key, "~") || strings.Contains(key, "->") {
				return fmt.Sprintf("%.80q in %s", key, at)
			}
			if found := expression(v[key], at+"."+key); found != "" {
				return found
			}
		}
	case []any:
		for i, e := range v {
			if found := expression(e, fmt.Sprintf("%s[%d]", at, i)); found != "" {
				return found
			}
		}
	case string:
		if isExpression(v) {
			return fmt.Sprintf("%.80q in %s", v, at)
		}
	}
	return ""
}

func isExpression(s string) bool { return strings.HasPrefix(s, "(") && strings.HasSuffix(s, ")") }
