package check

import (
	"encoding/json"
	"fmt"
	"slices"

	kjson "sigs.k8s.io/json"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/internal/kinds"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/internal/yamldoc"
)

// ErrCABundleIgnored is the code for a CA bundle that an author has
// put into a webhook.
var ErrCABundleIgnored = errcode.Code{
	Name: "CABundleIgnored", Class: errcode.Invalid,
	Cause: "A webhook contains a CA bundle; the package manager replaces it with its own at install.",
	Fix:   "Remove the caBundle.",
}

// ErrInvalidPackageObject is the code for an object, other than a CRD, that an API server rejects.
var ErrInvalidPackageObject = errcode.Code{
	Name: "InvalidPackageObject", Class: errcode.Invalid,
	Cause: "An API server would reject an object of the package, such as a Composition or a webhook configuration.",
	Fix:   "Correct the named field.",
}

// objectChecker checks one object.
type objectChecker struct {
	*checker
	object xpkg.Object
	lines  yamldoc.Locator
	// text is the JSON of the object. It is nil after the check, so that the checks of a large package do not hold all
	// texts.
	text     []byte
	crd      partialCRD // of a CRD, an XRD or an MRD
	findings []xpkg.Finding
}

// partial holds the fields that the checks of this package examine.
type partial struct {
	Metadata struct {
		Annotations map[string]string `json:"annotations"`
		Labels      map[string]string `json:"labels"`
	} `json:"metadata"`
	Spec     partialCRD `json:"spec"`
	Webhooks []struct {
		ClientConfig partialClient `json:"clientConfig"`
	} `json:"webhooks"`
}

type partialClient struct {
	CABundle string `json:"caBundle"`
}

func (c *objectChecker) check() {
	c.text, _ = c.object.JSON() // It was read before.
	defer func() { c.text = nil }()
	var p partial
	// Fields of the wrong type are rejected by the API server; the fields that can be
	// decoded are checked anyway.
	_ = json.Unmarshal(c.text, &p)
	if problem := Annotations(p.Metadata.Annotations); problem != "" {
		c.finding(ErrAnnotationsTooLarge, "metadata.annotations", "%s", problem)
	}
	for _, key := range xpkg.ReservedKeys(p.Metadata.Annotations) {
		c.finding(xpkg.ErrReservedKey, annotationPath(key), "only users set the annotation %.300q; it is ignored", key)
	}
	for _, key := range xpkg.ReservedKeys(p.Metadata.Labels) {
		c.finding(xpkg.ErrReservedKey, "metadata.labels["+key+"]", "only users set the label %.300q; it is ignored", key)
	}
	problems := Labels(p.Metadata.Labels, p.Metadata.Annotations)
	if c.object.GVK.Group == kinds.GroupCRD {
		c.report(c.invalidCRD(), problems)
	} else {
		c.report(ErrInvalidPackageObject, problems)
	}
	c.checkSchema()
	switch c.object.GVK.Group {
	case kinds.GroupAdmission:
		for i, w := range p.Webhooks {
			c.checkCABundle(w.ClientConfig.CABundle, fmt.Sprintf("webhooks[%d].clientConfig.caBundle", i))
		}
	case kinds.GroupCRD:
		c.crd = p.Spec
		c.checkCRD(&p)
	case kinds.GroupComposition:
		if k := c.object.GVK.Kind; k == kinds.XRD || k == kinds.MRD {
			c.crd = p.Spec
			c.checkGroup(&p.Spec)
			c.checkXRD(&p.Spec)
		}
	}
	c.checkConcerns()
}

func (c *objectChecker) checkCABundle(bundle, path string) {
	if bundle != "" {
		c.finding(ErrCABundleIgnored, path, "%s is set", path)
	}
}

func (c *objectChecker) finding(code errcode.Code, path, format string, args ...any) {
	f := c.object.Finding(code, c.lines.Line(path), fmt.Sprintf(format, args...))
	f.Kind, f.Name = c.object.GVK.Kind, c.object.Name
	c.findings = append(c.findings, f)
}

// checkSchema validates an object other than a CRD against the schema of its kind.
func (c *objectChecker) checkSchema() {
	s, ok := schemas[c.object.GVK]
	if !ok {
		return
	}
	var value map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(c.text, &value); err != nil {
		return // It was read before.
	}
	root := mappingOf("", fields{
		"apiVersion": aString, "kind": aString, "metadata": anyValue, "spec": s.spec, "status": anyValue,
	})
	if s.spec == nil {
		root.fields["webhooks"] = s.webhooks
		delete(root.fields, "spec")
	}
	c.report(
		ErrInvalidPackageObject,
		slices.Concat(root.check("", value), webhookNames(value["webhooks"]), problems(s.extra, value["spec"])),
	)
	c.report(ErrNotForCrossplane2, problems(s.crossplane2, value["spec"]))
	c.report(ErrUnknownField, root.unknown("", value))
}

// report records the first problems of the object.
func (c *objectChecker) report(code errcode.Code, problems []Problem) {
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
		c.finding(code, p.Path, "%s", yamldoc.Printable(text))
	}
}
