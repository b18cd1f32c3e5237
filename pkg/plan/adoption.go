package plan

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AdoptedByAnnotation marks an object that a user created and that a package adopted, with the consent of
// the user. Its value is the package, as "Kind/name". The object has no owner reference to the package, so
// that the garbage collector does not delete it with the package.
const AdoptedByAnnotation = "xpkg.dev/adopted-by"

// NeedsAdoption is an object that a user created. It is adopted only with the consent of the user.
const NeedsAdoption Cause = "NeedsAdoption"

// ObjectName returns the name of an object in a consent to its adoption, as "Kind/name".
func (r Ref) ObjectName() string { return r.Kind + "/" + r.Name }

// mark returns the value of AdoptedByAnnotation for objects that the package adopted.
func (who Requester) mark() string { return who.Package.Kind + "/" + who.Package.Name }

// hasAdopted reports whether the package has adopted an object with these annotations.
func (who Requester) hasAdopted(annotations map[string]string) bool {
	return who.Package != Owner{} && annotations[AdoptedByAnnotation] == who.mark()
}

// holderOf returns the package or revision that holds an object: its controller, or the package that has
// adopted it.
func holderOf(l Live) string {
	if c := controller(l.Owners); c != nil {
		return c.Kind + "/" + c.Name
	}
	return l.Annotations[AdoptedByAnnotation]
}

// fixOfAdopted returns the remedy for an object that another package has adopted: a package keeps it also with a
// version that does not contain it.
func (r Ref) fixOfAdopted(holder string) string {
	kind, name, _ := strings.Cut(holder, "/")
	namespace := ""
	if r.Namespace != "" {
		namespace = "--namespace " + r.Namespace + " "
	}
	return fmt.Sprintf("a user let %s/%s adopt the object: when that package has a version without it, or is uninstalled, return it with `kubectl annotate %s%s.%s %s %s- %s- %s-`, and let this package adopt it with --adopt",
		strings.ToLower(kind), name, namespace, strings.ToLower(r.Kind), group(r.APIVersion), r.Name, AdoptedByAnnotation,
		ContentDigestAnnotation, CABundleHashAnnotation)
}

// isUserObject reports whether a user created an object, and not a package manager.
func (who Requester) isUserObject(l Live) bool {
	return l.Annotations[ContentDigestAnnotation] == "" && l.Annotations[AdoptedByAnnotation] == "" &&
		controller(l.Owners) == nil && !slices.ContainsFunc(l.Owners, who.IsFamily)
}

// refuseAdoption returns a refusal for an object that a user created, unless the user has consented to its
// adoption. Objects that belong to their revision only, such as roles, need no consent.
func (who Requester) refuseAdoption(l Live) (Refusal, bool) {
	if who.Package == (Owner{}) || !who.isUserObject(l) || slices.Contains(who.Adopts, l.Ref.ObjectName()) {
		return Refusal{}, false
	}
	name := strings.ToLower(who.Package.Kind) + "/" + who.Package.Name
	return Refusal{
		Ref: l.Ref, Cause: NeedsAdoption, Reason: l.Ref.Kind + " " + l.Ref.Name + " exists and belongs to no package",
		Fix: "review the objects, and run `xpkg approve " + name + "` to let the package adopt them, or delete them",
	}, true
}

// keepsOwners reports whether the owners of an object stay unchanged, because it was adopted or is adopted
// now.
func (who Requester) keepsOwners(l Live) bool {
	return who.hasAdopted(l.Annotations) || who.Package != (Owner{}) && who.isUserObject(l)
}

// release plans to return an adopted object to its user.
func release(l Live, owners []metav1.OwnerReference) Change {
	c := Change{
		Action: Leave, Ref: l.Ref, MetadataOnly: true, UID: l.UID, ResourceVersion: l.ResourceVersion, Owners: owners,
	}
	for _, key := range []string{AdoptedByAnnotation, CABundleHashAnnotation, ContentDigestAnnotation} {
		if _, ok := l.Annotations[key]; ok {
			c.RemoveAnnotations = append(c.RemoveAnnotations, key)
		}
	}
	slices.Sort(c.RemoveAnnotations)
	return c
}

// Releases returns the changes of an uninstall that return adopted objects to their users. The garbage
// collector does not carry them out.
func (p Plan) Releases() Plan {
	var out Plan
	for _, c := range p.Changes {
		if c.Action == Leave && slices.Contains(c.RemoveAnnotations, AdoptedByAnnotation) {
			out.Changes = append(out.Changes, c)
		}
	}
	return out
}

// Refuse returns the refusals of objects that exist and must not be written.
func (who Requester) Refuse(refs []Ref, live map[Ref]Live) []Refusal {
	var out []Refusal
	for _, ref := range refs {
		if l, exists := live[ref]; exists {
			if refusal, refused := who.refuse(l); refused {
				out = append(out, refusal)
			}
		}
	}
	return out
}
