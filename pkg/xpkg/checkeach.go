package xpkg

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/internal/yamldoc"
)

// Codes of checks that do not need the content of an object.
var (
	ErrInvalidName = errcode.Code{
		Name: "InvalidName", Class: errcode.Invalid,
		Cause: "An object has no name, or a name that an API server rejects.",
		Fix:   "Use a name of at most 253 lower-case letters, digits, '-' and '.', that starts and ends with a letter or digit.",
	}
	ErrInvalidMetaName = errcode.Code{
		Name: "InvalidMetaName", Class: errcode.Invalid,
		Cause: "The metadata object has no name, or a name that is invalid for a package.",
		Fix:   "Use a name of at most 253 lower-case letters, digits, '-' and '.', that starts and ends with a letter or digit.",
	}
	ErrObjectTooLarge = errcode.Code{
		Name: "ObjectTooLarge", Class: errcode.Limit,
		Cause: "An object is larger than the maximum of the API server.",
		Fix:   "Make the object smaller, for example by shorter descriptions, or raise the named limit if the server's was raised.",
	}
	ErrTextOnSeparator = errcode.Code{
		Name: "TextOnSeparator", Class: errcode.Invalid,
		Cause: "A document starts on the line of its separator. This is valid YAML, but other readers of packages reject it.",
		Fix:   "Start the document on the line after \"---\".",
	}
)

// checkEach runs the checks that need a single object.
func (a *assembler) checkEach() {
	if m := a.pkg.Meta; m.Kind != "" {
		a.checkSeparator(m.Raw, a.metaHeader())
		if what := nameFault(m.Name); what != "" {
			a.add(m.Raw, a.metaHeader(), &yamldoc.Fault{Code: ErrInvalidMetaName, What: what})
		}
	}
	for _, o := range a.pkg.Objects {
		h := header{kind: o.GVK.Kind, name: o.Name}
		a.checkSeparator(o.Document, h)
		if what := nameFault(o.Name); what != "" {
			a.add(o.Document, h, &yamldoc.Fault{Code: ErrInvalidName, What: what})
		}
		if o.size() > a.limits.ObjectBytes {
			a.add(o.Document, h, &yamldoc.Fault{Code: ErrObjectTooLarge, What: a.limits.Exceeded(&a.limits.ObjectBytes)})
		}
	}
}

func (a *assembler) checkSeparator(d Document, h header) {
	if first, _ := yamldoc.CutLine(d.Raw); yamldoc.IsMarker(first, "---") && !yamldoc.IsComment(first[3:]) {
		a.add(d, h, &yamldoc.Fault{
			Code: ErrTextOnSeparator, Line: 1, What: "the document starts on the line of its separator",
		})
	}
}

func (a *assembler) metaHeader() header {
	return header{kind: string(a.pkg.Meta.Kind), name: a.pkg.Meta.Name}
}

// nameFault describes the problem with a name, and returns "" for a valid name.
func nameFault(name string) string {
	if name == "" {
		return "metadata.name is missing or not a string"
	}
	if len(name) > validation.DNS1123SubdomainMaxLength {
		return fmt.Sprintf(
			"metadata.name has %d characters, at most %d are allowed", len(name), validation.DNS1123SubdomainMaxLength,
		)
	}
	if len(validation.IsDNS1123Subdomain(name)) > 0 {
		return "metadata.name is not a lower-case RFC 1123 name"
	}
	return ""
}
