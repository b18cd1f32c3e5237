package format

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/xpkg-dev/xpkg/internal/failure"
	"github.com/xpkg-dev/xpkg/internal/rights"
	"github.com/xpkg-dev/xpkg/internal/wording"
)

// Codes for custom resource definitions.
var (
	ErrCRDName = failure.Register(failure.Code{
		Name: "CRDName", Class: failure.Invalid,
		Cause: "The name of a CustomResourceDefinition is not its plural and group.",
		Fix:   "Set metadata.name to spec.names.plural, a dot, and spec.group.",
	})
	ErrStorageVersion = failure.Register(failure.Code{
		Name: "StorageVersion", Class: failure.Invalid,
		Cause: "A CustomResourceDefinition does not have exactly one storage version.",
		Fix:   "Set storage: true on one version, and false on the others.",
	})
	ErrUnapprovedGroup = failure.Register(failure.Code{
		Name: "UnapprovedGroup", Class: failure.Invalid,
		Cause: "The group of a CustomResourceDefinition belongs to the Kubernetes community, which has to approve the API.",
		Fix:   "Use a group of your own, or add the annotation api-approved.kubernetes.io with the URL of the approval.",
	})
	ErrDeprecatedCRD = failure.Register(failure.Code{
		Name: "DeprecatedCRD", Class: failure.Invalid,
		Cause: "A CustomResourceDefinition is of apiextensions.k8s.io/v1beta1, which API servers do not take since Kubernetes 1.22. It is converted at install.",
		Fix:   "Write it as apiextensions.k8s.io/v1, with a structural schema.",
	})
	ErrUnsupportedCRD = failure.Register(failure.Code{
		Name: "UnsupportedCRD", Class: failure.Unsupported,
		Cause: "A CustomResourceDefinition is of a version that xpkg does not know.",
		Fix:   "Write it as apiextensions.k8s.io/v1, or use a newer xpkg.",
	})
	ErrInvalidCRD = failure.Register(failure.Code{
		Name: "InvalidCRD", Class: failure.Invalid,
		Cause: "An API server would refuse the CustomResourceDefinition.",
		Fix:   "Correct the field that is named.",
	})
	ErrInvalidInputSchema = failure.Register(failure.Code{
		Name: "InvalidInputSchema", Class: failure.Invalid,
		Cause: "A CustomResourceDefinition of a Function, which describes its input and is not installed, is not valid.",
		Fix:   "Correct the field that is named.",
	})
	ErrSchemaTooLarge = failure.Register(failure.Code{
		Name: "SchemaTooLarge", Class: failure.Limit,
		Cause: "The schemas of a CustomResourceDefinition have more properties than the limit.",
		Fix:   "Use fewer properties, or raise the limit that is named.",
	})
)

const (
	crdV1      = "v1"
	crdV1Beta1 = "v1beta1"

	// maxProblems is how many problems of one object are told.
	maxProblems = 20

	annotationAPIApproved = "api-approved.kubernetes.io"
)

// partialCRD is the part of a definition's spec that is the same in v1 and
// v1beta1, and the places of certificate authorities in both.
type partialCRD struct {
	Group string `json:"group"`
	Names struct {
		Plural string `json:"plural"`
	} `json:"names"`
	Versions []struct {
		Name    string `json:"name"`
		Storage bool   `json:"storage"`
	} `json:"versions"`
	Conversion struct {
		Client  partialClient `json:"webhookClientConfig"`
		Webhook struct {
			Client partialClient `json:"clientConfig"`
		} `json:"webhook"`
	} `json:"conversion"`
}

// checkCRD makes the checks of this package, which say more plainly what is wrong,
// and then lets the API server's code say what else there is.
func (c *objectChecker) checkCRD(p *partial) {
	told := []string{}
	tell := func(code failure.Code, path, message string) {
		told = append(told, path)
		c.finding(code, path, "%s", message)
	}
	spec := &p.Spec
	if want := spec.Names.Plural + "." + spec.Group; c.object.Name != want {
		tell(ErrCRDName, "metadata.name", fmt.Sprintf("metadata.name must be %.300q", want))
	}
	if n := storageVersions(spec); n != 1 && (n > 1 || c.object.GVK.Version == crdV1) {
		tell(ErrStorageVersion, "spec.versions", wording.Count(n, "storage version")+", exactly one is needed")
	}
	if isCommunityGroup(spec.Group) && p.Metadata.Annotations[annotationAPIApproved] == "" {
		tell(ErrUnapprovedGroup, "metadata.annotations["+annotationAPIApproved+"]",
			fmt.Sprintf("group %.100q without the annotation %s", spec.Group, annotationAPIApproved))
	}
	if defined := (schema.GroupResource{Group: spec.Group, Resource: spec.Names.Plural}); c.pkg.Meta.Kind != Function && spec.Group != "" && rights.Reserved(defined) {
		tell(rights.ErrReservedDefinition, "spec.group", fmt.Sprintf("%.300s is not a package's to define", defined))
	}
	c.checkCABundle(spec.Conversion.Client.CABundle, "spec.conversion.webhookClientConfig.caBundle")
	c.checkCABundle(spec.Conversion.Webhook.Client.CABundle, "spec.conversion.webhook.clientConfig.caBundle")
	if n := countProperties(c.text); n > c.limits.SchemaProperties {
		f := c.limits.breach(ErrSchemaTooLarge, &c.limits.SchemaProperties, 0)
		c.finding(f.code, "spec.versions", "%s", f.what)
		return
	}
	c.checkByServer(told)
}

func storageVersions(spec *partialCRD) int {
	n := 0
	for _, v := range spec.Versions {
		if v.Storage {
			n++
		}
	}
	return n
}

// isCommunityGroup says whether a group is protected by the Kubernetes community
// (KEP-1111).
func isCommunityGroup(group string) bool {
	for _, g := range []string{"k8s.io", "kubernetes.io"} {
		if group == g || strings.HasSuffix(group, "."+g) {
			return true
		}
	}
	return false
}

// checkByServer runs the API server's validation, and leaves out what was told.
func (c *objectChecker) checkByServer(told []string) {
	code := ErrInvalidCRD
	if c.pkg.Meta.Kind == Function {
		code = ErrInvalidInputSchema
	}
	text := c.text
	switch c.object.GVK.Version {
	case crdV1:
	case crdV1Beta1:
		c.finding(ErrDeprecatedCRD, "apiVersion", "apiextensions.k8s.io/v1beta1")
		converted, err := ConvertV1Beta1CRD(text)
		if err != nil {
			c.finding(code, "", "%s", printable(err.Error()))
			return
		}
		text = converted
	default:
		c.finding(ErrUnsupportedCRD, "apiVersion", "version %.40q of %s", c.object.GVK.Version, groupCRD)
		return
	}
	if c.opts.CRDs == nil {
		return
	}
	problems := c.opts.CRDs(text)
	problems = slices.DeleteFunc(problems, func(p SchemaProblem) bool { return wasTold(p.Path, told) })
	sortProblems(problems)
	for i, p := range problems {
		if i == maxProblems {
			c.finding(code, "", "%d more problems", len(problems)-i)
			break
		}
		text := p.Message
		if p.Path != "" {
			text = p.Path + ": " + text
		}
		c.finding(code, p.Path, "%s", printable(text))
	}
}

// wasTold says whether a problem of the API server is one that this package has
// told already. A fault in the storage versions shows up at a second place.
func wasTold(path string, told []string) bool {
	if path == "status.storedVersions" {
		path = "spec.versions"
	}
	return slices.Contains(told, path)
}

// countProperties counts the fields of all objects named "properties", which is
// what the memory and the time of an API server depend on.
func countProperties(text []byte) int {
	n := 0
	c := cursor{text: text}
	var walk func(inside bool)
	walk = func(inside bool) {
		switch c.text[c.at] {
		case '{':
			c.fields(func(key string) bool {
				if inside {
					n++
				}
				walk(key == "properties" && !inside)
				return true
			})
		case '[':
			c.elements(func() { walk(false) })
		}
	}
	walk(false)
	return n
}
