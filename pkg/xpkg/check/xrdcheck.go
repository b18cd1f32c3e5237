package check

import (
	"encoding/json"
	"fmt"
	"strings"

	crdv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/internal/kinds"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/internal/typed"
)

// ErrInvalidXRD is the code for an XRD or MRD from which Crossplane cannot create a CRD.
var ErrInvalidXRD = errcode.Code{
	Name: "InvalidXRD", Class: errcode.Invalid,
	Cause: "An API server would reject the CustomResourceDefinition that Crossplane creates from a CompositeResourceDefinition or a ManagedResourceDefinition, so that its kind is never served.",
	Fix:   "Correct the named field.",
}

// checkXRD checks an XRD or MRD for problems that keep Crossplane from creating its CRD: a name other than plural and
// group, duplicate versions, not exactly one storage version, and values that an API server rejects. It does nothing
// for the objects of versions without a schema in this package.
func (c *objectChecker) checkXRD(spec *partialCRD) {
	if schemas[c.object.GVK] == nil {
		return
	}
	if want := spec.Names.Plural + "." + spec.Group; spec.Names.Plural != "" && spec.Group != "" && c.object.Name != want {
		c.finding(ErrInvalidXRD, "metadata.name", "metadata.name must be %.300q", want)
	}
	// The schema of the XRD reports missing versions.
	reported := append(c.checkVersions(spec, ErrInvalidXRD), "spec.versions")
	storage := "referenceable version"
	if c.object.GVK.Kind == kinds.MRD {
		storage = "storage version"
	}
	if n := storageVersions(spec); n != 1 && spec.Versions != nil {
		c.finding(ErrInvalidXRD, "spec.versions", "%s, exactly one is required", wording.Count(n, storage))
	}
	problems := c.serverProblems(crdOfXRD(c.text), reported)
	if c.object.GVK.Kind == kinds.XRD {
		for _, p := range c.serverProblems(crdOfClaim(c.text), nil) {
			if rest, ok := strings.CutPrefix(p.Path, "spec.names"); ok {
				problems = append(problems, Problem{Path: "spec.claimNames" + rest, Message: p.Message})
			}
		}
	}
	c.report(ErrInvalidXRD, problems)
}

// serverProblems returns the problems of the CRD of an XRD or MRD that neither the schema of the XRD nor the reported
// paths cover, and reports unknown fields in its schemas. It returns none without a CRD.
func (c *objectChecker) serverProblems(text []byte, reported []string) []Problem {
	if text == nil {
		return nil
	}
	wrong, text := c.checkTypes(text, typed.ShapeOf[crdv1.CustomResourceDefinition](), isInSchema)
	composite := c.object.GVK.Kind == kinds.XRD
	out := wrong
	for _, p := range c.validate(text, reported, wrong) {
		if isOfDefinition(p) && (!composite || isTaken(p)) {
			out = append(out, p)
		}
	}
	return out
}

// isInSchema reports whether a path is in a schema, whose fields the schema of the XRD does not describe.
func isInSchema(path string) bool { return strings.Contains(path, ".openAPIV3Schema") }

// isOfDefinition reports whether a problem of a CRD is in a value that Crossplane takes from an XRD or MRD, and that
// the schema of the XRD does not report: it reports missing fields.
func isOfDefinition(p Problem) bool {
	if strings.HasPrefix(p.Path, "metadata") || strings.HasPrefix(p.Path, "status") {
		return false
	}
	return isInSchema(p.Path) || strings.HasPrefix(p.Path, "spec.conversion") ||
		!strings.HasPrefix(p.Message, "Required value")
}

// isTaken reports whether a problem of a CRD is in a value that Crossplane takes from an XRD: of its schemas, it takes
// the properties of spec and status, and sets the types of these two itself.
func isTaken(p Problem) bool {
	if !isInSchema(p.Path) {
		return true
	}
	for _, property := range []string{"spec", "status"} {
		_, rest, found := strings.Cut(p.Path, "openAPIV3Schema.properties["+property+"]")
		if found && rest != ".type" {
			return true
		}
	}
	return false
}

// crdOfXRD returns a CRD with the names, the conversion and the versions of an XRD or MRD. It omits values of the wrong
// type, which the schema of the XRD reports, except in the schemas of the versions.
func crdOfXRD(text []byte) []byte {
	spec := fieldsOf(fieldsOf(text)["spec"])
	versions := []map[string]any{}
	for i, v := range elementsOf(spec["versions"]) {
		from := fieldsOf(v)
		version := map[string]any{"name": stringOf(from["name"], fmt.Sprintf("v%d", i+1)), "served": true,
			"storage": isTrue(from["storage"]) || isTrue(from["referenceable"])}
		for _, field := range []string{
			"schema", "subresources", "additionalPrinterColumns", "selectableFields", "deprecated", "deprecationWarning",
		} {
			if value := from[field]; value != nil {
				version[field] = value
			}
		}
		versions = append(versions, version)
	}
	crd := map[string]any{"group": spec["group"], "names": spec["names"], "scope": "Cluster", "versions": versions}
	if spec["conversion"] != nil {
		crd["conversion"] = spec["conversion"]
	}
	return crdText(crd)
}

// crdOfClaim returns a CRD with the names of the claim of an XRD, and nil if it has none.
func crdOfClaim(text []byte) []byte {
	spec := fieldsOf(fieldsOf(text)["spec"])
	if spec["claimNames"] == nil {
		return nil
	}
	schema := map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}}
	return crdText(map[string]any{
		"group": spec["group"], "names": spec["claimNames"], "scope": "Cluster",
		"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true, "schema": schema}},
	})
}

func crdText(spec map[string]any) []byte {
	names, _ := spec["names"].(json.RawMessage)
	group, _ := spec["group"].(json.RawMessage)
	name := stringOf(fieldsOf(names)["plural"], "") + "." + stringOf(group, "")
	out, _ := json.Marshal(map[string]any{ // The values come from JSON.
		"apiVersion": kinds.GroupCRD + "/" + crdV1, "kind": kinds.CRD, "metadata": map[string]any{"name": name}, "spec": spec,
	})
	return out
}

// fieldsOf returns the fields of a JSON object, and none for another value.
func fieldsOf(raw []byte) (out map[string]json.RawMessage) {
	_ = json.Unmarshal(raw, &out)
	return out
}

// elementsOf returns the elements of a JSON array, and none for another value.
func elementsOf(raw []byte) (out []json.RawMessage) {
	_ = json.Unmarshal(raw, &out)
	return out
}

// stringOf returns a JSON string, and otherwise the default.
func stringOf(raw []byte, otherwise string) string {
	out := otherwise
	if json.Unmarshal(raw, &out) != nil {
		return otherwise
	}
	return out
}

func isTrue(raw []byte) bool { return string(raw) == "true" }
