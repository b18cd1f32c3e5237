package fence

import (
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
)

// ConsentsName is the name of the fence of consents.
const ConsentsName = "xpkg-consents"

// Consent is an annotation that loosens a protection.
type Consent struct {
	// Annotation is the key.
	Annotation string
	// Separator separates the parts of the value. A value permits at most what all of its parts permit, so a part can be
	// removed.
	Separator string
	// Permits completes "which".
	Permits string
}

// Safeguard is an annotation whose value tightens a protection. Without is the effect of its removal, as a clause.
type Safeguard struct{ Annotation, Value, Without string }

// Guarded are the annotations of the objects of some resources.
type Guarded struct {
	// Resources are the plural names in the API group of packages.
	Resources  []string
	Consents   []Consent
	Safeguards []Safeguard
	// Sources are annotations that select where the images of runtimes come from.
	Sources []string
}

// Consents returns the fence of consents in annotations of packages and revisions. An identity that may not update the
// revisions of a kind of package neither gives a consent, by adding a part to such an annotation, nor removes a
// safeguard, nor selects another source of images, nor changes the repository of an object with consents. It may remove
// a consent.
//
// An administrator approves permissions with an annotation of a revision. Consents in other objects thus need the same
// permission.
func Consents(g Guarded) Fence {
	f := Fence{
		Name: ConsentsName, Purpose: "denies consents of users who may not give them",
		Risk: "the manager does not accept consents in annotations of packages",
		Conditions: []admissionv1.MatchCondition{
			{Name: "annotated", Expression: annotated("object") + " || " + annotated("oldObject")},
			{
				Name: "may-not-update-revisions",
				Expression: fmt.Sprintf(
					"!authorizer.group(%q).resource(%s).check(\"update\").allowed()", v1.Group, revisionsOfRequest,
				),
			},
		},
		Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
		Rules:      []admissionv1.Rule{{APIGroups: []string{v1.Group}, APIVersions: []string{"*"}, Resources: g.Resources}},
		Variables: []admissionv1.Variable{
			{Name: "now", Expression: annotated("object") + " ? object.metadata.annotations : {}"},
			{Name: "old", Expression: annotated("oldObject") + " ? oldObject.metadata.annotations : {}"},
			{Name: "permission", Expression: `"This needs the permission to update " + ` + revisionsOfRequest + ` + ` +
				quote("."+v1.Group+".")},
			{Name: "source", Expression: "has(object.spec.package) ? " + Repository("object.spec.package") + " : ''"},
			{Name: "formerSource", Expression: "has(oldObject.spec.package) ? " + Repository("oldObject.spec.package") +
				" : ''"},
		},
	}
	for _, c := range g.Consents {
		f.Validations = append(
			f.Validations,
			permitted(c.isNotExtended(), fmt.Sprintf("The annotation %s is a consent, which %s.", c.Annotation, c.Permits)),
		)
	}
	for _, s := range g.Safeguards {
		f.Validations = append(
			f.Validations,
			permitted(s.stays(), fmt.Sprintf("Without the annotation %s: %s, %s.", s.Annotation, s.Value, s.Without)),
		)
	}
	for _, key := range g.Sources {
		f.Validations = append(f.Validations,
			permitted(fmt.Sprintf("variables.now[?%[1]s] == variables.old[?%[1]s]", quote(key)),
				fmt.Sprintf("The annotation %s selects the program that runs with the permissions of the package.", key)))
	}
	f.Validations = append(f.Validations, permitted(g.keepsSource(),
		"The package has consents, in the annotations "+strings.Join(g.keys(), ", ")+
			", which were given for its repository. Remove them before you change the repository, or have an administrator change it."))
	return f
}

// revisionsOfRequest is the CEL expression for the resource of the revisions of the kind of package of a request.
const revisionsOfRequest = `(request.resource.resource.endsWith("revisions") ? request.resource.resource : ` +
	`request.resource.resource.substring(0, request.resource.resource.size() - 1) + "revisions")`

// annotated returns the condition that an object of a request exists and has annotations.
func annotated(object string) string {
	return fmt.Sprintf("(%[1]s != null && has(%[1]s.metadata.annotations))", object)
}

// permitted returns a validation. The message is followed by the missing permission.
func permitted(expression, message string) admissionv1.Validation {
	return admissionv1.Validation{Expression: expression, Message: message, MessageExpression: quote(message+" ") +
		" + variables.permission"}
}

// isNotExtended returns the condition that each part of the new value is a part of the former one.
func (c Consent) isNotExtended() string {
	return fmt.Sprintf("!(%[1]s in variables.now) || %[1]s in variables.old && (variables.now[%[1]s] == variables.old[%[1]s] || "+
		"variables.now[%[1]s].split(%[2]s).all(part, part.trim() == '' || part.trim() in variables.old[%[1]s].split(%[2]s).map(former, former.trim())))",
		quote(c.Annotation), quote(c.Separator))
}

// stays returns the condition that an annotation keeps its value.
func (s Safeguard) stays() string {
	const has = "%[1]s in variables.%[3]s && variables.%[3]s[%[1]s] == %[2]s"
	key, value := quote(s.Annotation), quote(s.Value)
	return "!(" + fmt.Sprintf(has, key, value, "old") + ") || " + fmt.Sprintf(has, key, value, "now")
}

// keys returns the keys of the consents.
func (g Guarded) keys() []string {
	var out []string
	for _, c := range g.Consents {
		out = append(out, c.Annotation)
	}
	return out
}

// keepsSource returns the condition that an object has no consents, or the same repository as before.
func (g Guarded) keepsSource() string {
	return fmt.Sprintf("request.operation != 'UPDATE' || !%s.exists(key, key in variables.now) || "+
		"variables.source == variables.formerSource", list(g.keys()))
}

const (
	// repositoryForm is the form of a repository with its registry.
	repositoryForm = `(localhost|[A-Za-z0-9_-]+([.][A-Za-z0-9_-]+)+)(:[0-9]+)?(/[a-z0-9._-]+)+`
	// ReferenceForm is the form of a reference to a version in a repository, as in spec.package.
	ReferenceForm = `^` + repositoryForm +
		`(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}(@sha256:[a-f0-9]{64})?|@sha256:[a-f0-9]{64})$`
)

// Repository returns the CEL expression for the repository of a reference: its registry and path as they are written.
// Another text, such as the name of a file in the package cache, is returned unchanged. References with equal results
// have equal repositories.
func Repository(reference string) string {
	return fmt.Sprintf(
		"(%[1]s.matches(%[2]s) ? %[1]s.find(%[3]s) : %[1]s)", reference, quote(ReferenceForm), quote("^"+repositoryForm),
	)
}

// list returns a list of strings of CEL.
func list(texts []string) string {
	quoted := make([]string, len(texts))
	for i, text := range texts {
		quoted[i] = quote(text)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}
