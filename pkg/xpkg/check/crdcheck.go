package check

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	crdv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdv1beta1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/rbac"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/crd"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/internal/canonical"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/internal/kinds"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/internal/typed"
)

// Codes of CRD checks.
var (
	ErrCRDName = errcode.Code{
		Name: "CRDName", Class: errcode.Invalid,
		Cause: "The name of a CustomResourceDefinition is not its plural and group.",
		Fix:   "Set metadata.name to spec.names.plural, a dot, and spec.group.",
	}
	ErrStorageVersion = errcode.Code{
		Name: "StorageVersion", Class: errcode.Invalid,
		Cause: "A CustomResourceDefinition does not have exactly one storage version.",
		Fix:   "Set storage: true on one version, and false on the others.",
	}
	ErrUnapprovedGroup = errcode.Code{
		Name: "UnapprovedGroup", Class: errcode.Invalid,
		Cause: "The group of a CustomResourceDefinition belongs to the Kubernetes community, which has to approve the API.",
		Fix:   "Use a group of your own, or add the annotation api-approved.kubernetes.io with the URL of the approval.",
	}
	ErrDeprecatedCRD = errcode.Code{
		Name: "DeprecatedCRD", Class: errcode.Invalid,
		Cause: "A CustomResourceDefinition has the version apiextensions.k8s.io/v1beta1, which API servers reject since Kubernetes 1.22. It is converted at install.",
		Fix:   "Convert it to apiextensions.k8s.io/v1, with a structural schema.",
	}
	ErrUnsupportedCRD = errcode.Code{
		Name: "UnsupportedCRD", Class: errcode.Unsupported,
		Cause: "A CustomResourceDefinition has an unknown version.",
		Fix:   "Convert it to apiextensions.k8s.io/v1, or use a newer xpkg.",
	}
	ErrInvalidCRD = errcode.Code{
		Name: "InvalidCRD", Class: errcode.Invalid,
		Cause: "An API server would reject the CustomResourceDefinition.",
		Fix:   "Correct the named field.",
	}
	ErrBooleanProperty = errcode.Code{
		Name: "BooleanProperty", Class: errcode.Invalid,
		Cause: "A property of a schema has the name true or false. YAML tools of Kubernetes read names such as y, yes, on, n, no and off without quotes as booleans.",
		Fix:   "Write the name in quotes.",
	}
	ErrInvalidInputSchema = errcode.Code{
		Name: "InvalidInputSchema", Class: errcode.Invalid,
		Cause: "A CustomResourceDefinition of a Function, which describes its input and is not installed, is not valid.",
		Fix:   "Correct the named field.",
	}
	ErrUnknownField = errcode.Code{
		Name: "UnknownField", Class: errcode.Invalid,
		Cause: "An object of the package has an unknown field, or a schema requires a field that is not among its properties. An API server drops the field.",
		Fix:   "Check the spelling. Otherwise remove the field, or add the property.",
	}
	ErrUnserved = errcode.Code{
		Name: "NoServedVersion", Class: errcode.Invalid, Final: true,
		Cause: "A CRD, XRD or MRD of the package serves none of its versions, so that its custom resources could not be read.",
		Fix:   "Use another version, or ask the author of the package for one that serves a version.",
	}
	ErrSchemaTooLarge = errcode.Code{
		Name: "SchemaTooLarge", Class: errcode.Limit,
		Cause: "The schemas of a CustomResourceDefinition have more properties than the limit.",
		Fix:   "Use fewer properties, or raise the named limit.",
	}
)

const (
	crdV1      = "v1"
	crdV1Beta1 = "v1beta1"

	// maxProblems limits the reported problems of one object.
	maxProblems = 20

	annotationAPIApproved = "api-approved.kubernetes.io"
)

// partialCRD holds the fields of a CRD spec that are common to v1 and v1beta1, and the CA
// bundles of both.
type partialCRD struct {
	Group string   `json:"group"`
	Names crdNames `json:"names"`
	// ClaimNames are the names of the claim of an XRD.
	ClaimNames crdNames         `json:"claimNames"`
	Versions   []partialVersion `json:"versions"`
	Conversion struct {
		Strategy string        `json:"strategy"`
		Client   partialClient `json:"webhookClientConfig"`
		Webhook  struct {
			Client partialClient `json:"clientConfig"`
		} `json:"webhook"`
	} `json:"conversion"`
}

type partialVersion struct {
	Name string `json:"name"`
	// Storage is set in a CRD or MRD, and Referenceable in an XRD. A value of the wrong type, which is reported as such,
	// counts as true.
	Served        any `json:"served"`
	Storage       any `json:"storage"`
	Referenceable any `json:"referenceable"`
}

func isSet(value any) bool { return value != nil && value != false }

// checkCRD runs the checks of this package, whose messages are more specific, and then
// the validation of the API server.
func (c *objectChecker) checkCRD(p *partial) {
	reported := []string{"metadata.labels", "metadata.annotations"} // by check
	note := func(code errcode.Code, path, message string) {
		reported = append(reported, path)
		c.finding(code, path, "%s", message)
	}
	spec := &p.Spec
	if want := spec.Names.Plural + "." + spec.Group; c.object.Name != want {
		note(ErrCRDName, "metadata.name", fmt.Sprintf("metadata.name must be %.300q", want))
	}
	if n := storageVersions(spec); n != 1 && (n > 1 || c.object.GVK.Version == crdV1) {
		note(ErrStorageVersion, "spec.versions", wording.Count(n, "storage version")+", exactly one is required")
	}
	reported = append(reported, c.checkVersions(spec, c.invalidCRD())...)
	if isCommunityGroup(spec.Group) && p.Metadata.Annotations[annotationAPIApproved] == "" {
		note(ErrUnapprovedGroup, "metadata.annotations["+annotationAPIApproved+"]",
			fmt.Sprintf("group %.100q without the annotation %s", spec.Group, annotationAPIApproved))
	}
	if c.checkGroup(spec) {
		reported = append(reported, "spec.group")
	}
	c.checkCABundle(spec.Conversion.Client.CABundle, "spec.conversion.webhookClientConfig.caBundle")
	c.checkCABundle(spec.Conversion.Webhook.Client.CABundle, "spec.conversion.webhook.clientConfig.caBundle")
	if n := countProperties(c.text); n > c.limits.SchemaProperties {
		c.finding(ErrSchemaTooLarge, "spec.versions", "%s", c.limits.Exceeded(&c.limits.SchemaProperties))
		return
	}
	c.checkBooleanProperties()
	c.checkByServer(reported)
}

// checkBooleanProperties reports properties whose names the reader of YAML has changed.
func (c *objectChecker) checkBooleanProperties() {
	if !bytes.Contains(c.text, []byte(`"true":`)) && !bytes.Contains(c.text, []byte(`"false":`)) {
		return
	}
	cursor := canonical.Cursor{Text: c.text}
	var walk func(path string, inside bool)
	walk = func(path string, inside bool) {
		switch cursor.Text[cursor.At] {
		case '{':
			cursor.Fields(func(key string) bool {
				at := path + "." + key
				if inside {
					at = path + "[" + key + "]"
				}
				if inside && (key == "true" || key == "false") {
					c.finding(
						ErrBooleanProperty, strings.TrimPrefix(at, "."),
						"the schema has a property with the name %s, which an author has probably written as another word: %.300s", key,
						strings.TrimPrefix(at, "."),
					)
				}
				walk(at, key == "properties" && !inside)
				return true
			})
		case '[':
			i := 0
			cursor.Elements(func() { walk(fmt.Sprintf("%s[%d]", path, i), false); i++ })
		}
	}
	walk("", false)
}

// checkGroup refuses a CRD, an XRD or an MRD in a reserved group, and reports whether it
// has. The CRDs of a Function are never installed.
func (c *objectChecker) checkGroup(spec *partialCRD) (refused bool) {
	defined := apischema.GroupResource{Group: spec.Group, Resource: spec.Names.Plural}
	if c.pkg.Meta.Kind == xpkg.Function || spec.Group == "" || !rbac.Reserved(defined) {
		return false
	}
	c.finding(
		rbac.ErrReservedDefinition, "spec.group",
		"%.300s is in the group %.100s, which is reserved for Kubernetes, Crossplane and xpkg", defined, spec.Group,
	)
	return true
}

func storageVersions(spec *partialCRD) int {
	n := 0
	for _, v := range spec.Versions {
		if isSet(v.Storage) || isSet(v.Referenceable) {
			n++
		}
	}
	return n
}

// isCommunityGroup reports whether the Kubernetes community owns a group (KEP-1111).
func isCommunityGroup(group string) bool {
	for _, g := range []string{"k8s.io", "kubernetes.io"} {
		if group == g || strings.HasSuffix(group, "."+g) {
			return true
		}
	}
	return false
}

// checkVersions reports duplicate versions with a code, and a definition that serves no version, unless it belongs to a
// Function and is never installed. It returns the paths that an API server names for duplicate versions.
func (c *objectChecker) checkVersions(spec *partialCRD, code errcode.Code) (reported []string) {
	seen := map[string]bool{}
	for i, v := range spec.Versions {
		if seen[v.Name] && v.Name != "" {
			c.finding(code, fmt.Sprintf("spec.versions[%d].name", i), "the version %.100q is a duplicate", v.Name)
			reported = []string{"spec.versions"}
		}
		seen[v.Name] = true
	}
	if c.pkg.Meta.Kind != xpkg.Function && len(spec.Versions) > 0 &&
		!slices.ContainsFunc(spec.Versions, func(v partialVersion) bool { return isSet(v.Served) }) {
		c.finding(ErrUnserved, "spec.versions", "no version is served")
	}
	return reported
}

// invalidCRD returns the code for a CRD that an API server rejects. The CRDs of a Function are never installed.
func (c *objectChecker) invalidCRD() errcode.Code {
	if c.pkg.Meta.Kind == xpkg.Function {
		return ErrInvalidInputSchema
	}
	return ErrInvalidCRD
}

// checkByServer reports values of the wrong type and unknown fields. Then it runs the API server's validation of the
// other values, and skips problems at paths that were already reported.
func (c *objectChecker) checkByServer(reported []string) {
	shape := typed.ShapeOf[crdv1.CustomResourceDefinition]()
	switch c.object.GVK.Version {
	case crdV1:
	case crdV1Beta1:
		c.finding(ErrDeprecatedCRD, "apiVersion", "apiextensions.k8s.io/v1beta1")
		shape = typed.ShapeOf[crdv1beta1.CustomResourceDefinition]()
	default:
		c.finding(ErrUnsupportedCRD, "apiVersion", "version %.40q of %s", c.object.GVK.Version, kinds.GroupCRD)
		return
	}
	problems, text := c.checkTypes(c.text, shape, func(string) bool { return true })
	if c.object.GVK.Version == crdV1Beta1 {
		converted, err := crd.FromV1Beta1(text)
		if err != nil {
			c.report(c.invalidCRD(), append(problems, Problem{Message: err.Error()}))
			return
		}
		text = converted
	}
	c.report(c.invalidCRD(), append(problems, c.validate(text, reported, problems)...))
}

// checkTypes compares the JSON of a CRD with the type of an API server. It returns the values of the wrong type at
// paths for which a condition holds, and the JSON without them. It reports the unknown fields at these paths, and
// required fields without a property.
func (c *objectChecker) checkTypes(
	text []byte, shape *typed.Shape, at func(path string) bool,
) (wrong []Problem, corrected []byte) {
	found := typed.Check(text, shape)
	var unknown []Problem
	for _, f := range found {
		switch {
		case !at(f.Path):
		case f.Message != "":
			wrong = append(wrong, Problem{Path: f.Path, Message: f.Message})
		default:
			unknown = append(unknown, unknownField(f.Path, f.Known))
		}
	}
	corrected = typed.Correct(text, found)
	c.report(ErrUnknownField, append(unknown, requiredWithoutProperty(corrected, c.object.GVK.Kind == kinds.XRD)...))
	return wrong, corrected
}

// validate returns the problems of an API server with a CRD, except for paths that were reported, and for values of the
// wrong type, which are missing in the text.
func (c *objectChecker) validate(text []byte, reported []string, wrong []Problem) []Problem {
	if c.opts.CRDs == nil {
		return nil
	}
	return slices.DeleteFunc(c.opts.CRDs(text), func(p Problem) bool {
		return wasReported(p.Path, reported) ||
			slices.ContainsFunc(wrong, func(w Problem) bool { return isWithin(p.Path, w.Path) })
	})
}

// isWithin reports whether a path is another one or below it.
func isWithin(path, other string) bool {
	rest, ok := strings.CutPrefix(path, other)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// wasReported reports whether a problem of the API server duplicates a finding of this
// package. An error in the storage versions shows up at a second path.
func wasReported(path string, reported []string) bool {
	if path == "status.storedVersions" {
		path = "spec.versions"
	}
	return slices.Contains(reported, path)
}

// countProperties counts the fields of all objects named "properties", which determine
// the memory and time that an API server needs.
func countProperties(text []byte) int {
	n := 0
	c := canonical.Cursor{Text: text}
	var walk func(inside bool)
	walk = func(inside bool) {
		switch c.Text[c.At] {
		case '{':
			c.Fields(func(key string) bool {
				if inside {
					n++
				}
				walk(key == "properties" && !inside)
				return true
			})
		case '[':
			c.Elements(func() { walk(false) })
		}
	}
	walk(false)
	return n
}
