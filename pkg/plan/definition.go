package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Definition holds the fields of a CRD or an XRD that determine whether the API server accepts an update.
type Definition struct {
	Group, Plural, Kind, Scope string
	// Fixed holds further immutable fields, by their paths in the spec.
	Fixed map[string]string
	// Versions are the names of all versions, and Served the names of the served ones.
	Versions, Served []string
	// Storage is the version in which objects are stored.
	Storage string
	// Stored are the versions of status.storedVersions: objects can be stored in each of them. It is empty
	// for a CRD that is not live.
	Stored []string
	// Established reports that the API server serves the kind. Until then the scope and the kind can change.
	Established bool
	// Webhook reports that a webhook converts custom resources between the versions.
	Webhook bool
}

// Immutable returns a refusal for each immutable field that a new version of a definition changes.
func Immutable(ref Ref, live, want Definition) []Refusal {
	var out []Refusal
	check := func(field, is, becomes string) {
		if is == becomes || is == "" || becomes == "" {
			return
		}
		out = append(out, Refusal{Ref: ref, Cause: ImmutableField, Reason: fmt.Sprintf(
			"%s %s: %s is %s and cannot change to %s", ref.Kind, ref.Name, field, is, becomes)})
	}
	check("spec.group", live.Group, want.Group)
	check("spec.names.plural", live.Plural, want.Plural)
	if live.Established {
		check("spec.scope", live.Scope, want.Scope)
		check("spec.names.kind", live.Kind, want.Kind)
	}
	for _, field := range slices.Sorted(maps.Keys(live.Fixed)) {
		check(field, live.Fixed[field], want.Fixed[field])
	}
	return out
}

// DroppedStored returns the versions in which objects can be stored and that the new CRD does not contain.
func DroppedStored(live, want Definition) []string {
	var out []string
	for _, v := range live.Stored {
		if !slices.Contains(want.Versions, v) {
			out = append(out, v)
		}
	}
	return out
}

// Unserved returns a refusal for a CRD that serves none of its versions: the API server would serve no custom resource
// of it.
func Unserved(ref Ref, want Definition) []Refusal {
	if len(want.Served) > 0 {
		return nil
	}
	return []Refusal{{
		Ref: ref, Cause: NoServedVersion,
		Reason: fmt.Sprintf("%s %s serves none of its versions: %s", ref.Kind, ref.Name, strings.Join(want.Versions, ", ")),
	}}
}

// StoredVersions returns a refusal for a CRD that drops versions in which custom resources can be stored, and whose
// custom resources cannot be migrated. Why is the reason; it is empty if no version of the CRD in the cluster stays.
func StoredVersions(ref Ref, live, want Definition, dropped []string, why string) Refusal {
	versions := strings.Join(dropped, ", ")
	r := Refusal{
		Ref: ref, Cause: StoredVersionInUse,
		Reason: fmt.Sprintf("%s %s: the new version drops %s, in which custom resources can be stored, and %s", ref.Kind,
			ref.Name, versions, cmp.Or(why, "has no version to which they can be migrated")),
	}
	if why == "" {
		r.Fix = fmt.Sprintf(
			"First update to a version of the package whose %s has both %s and %s, and then to this one.",
			ref.Name, versions, strings.Join(want.Versions, " or "),
		)
		return r
	}
	r.Fix = fmt.Sprintf(
		"Allow xpkg to list and patch %s.%s (`--package-group %s` of the manager), or delete the custom resources.",
		live.Plural, live.Group, live.Group,
	)
	return r
}

// Names holds the names under which the API server serves a kind of a group.
type Names struct {
	Plural string
	// Definition is the XRD that defines the kind, if the API server does not serve the kind yet.
	Definition Live
	// Resources are the plural, the singular and the short names, and Kinds the kind and
	// the kind of its lists.
	Resources, Kinds []string
}

// NamesTaken returns a refusal for a CRD, XRD or MRD with a name of another kind in the same group. The API server
// stores such a CRD but does not serve it. A served kind with the wanted plural is not another kind: the owner of its
// CRD decides.
func NamesTaken(ref Ref, want Names, taken []Names) []Refusal {
	var out []Refusal
	for _, s := range taken {
		of, xrd := s.Plural+" of the same group", s.Definition.Ref
		if xrd.Name != "" {
			of = xrd.Kind + " " + xrd.Name
		}
		if s.Plural == want.Plural {
			if xrd.Name != "" {
				out = append(out, Refusal{Ref: ref, Holder: cmp.Or(holderOf(s.Definition), xrd.ObjectName()), Reason: fmt.Sprintf(
					"%s %s: %s defines the resource %s, and belongs to %s", ref.Kind, ref.Name, of, s.Plural,
					cmp.Or(holderOf(s.Definition), "no package"))})
			}
			continue
		}
		for _, name := range append(shared(want.Resources, s.Resources), shared(want.Kinds, s.Kinds)...) {
			out = append(out, Refusal{
				Ref: ref, Cause: NameTaken, Reason: fmt.Sprintf("%s %s: the name %s belongs to %s", ref.Kind, ref.Name, name, of),
			})
		}
	}
	return out
}

// HeldCRD returns a refusal for an XRD or an MRD whose CRD, or the CRD of its claim, has another holder: Crossplane
// does not take that CRD over, and never establishes the XRD or MRD. Owners are the owners of the XRD or MRD after the
// write.
func HeldCRD(ref Ref, crd Live, owners []metav1.OwnerReference) (Refusal, bool) {
	c := controller(crd.Owners)
	if c != nil {
		if c.Kind == ref.Kind && c.Name == ref.Name && group(c.APIVersion) == group(ref.APIVersion) {
			return Refusal{}, false
		}
		if own := controller(owners); own != nil && own.Kind == c.Kind && own.Name == c.Name {
			return Refusal{}, false
		}
	}
	holder := holderOf(crd)
	if holder == "" && crd.Annotations[ManagerAnnotation] != "" {
		holder = "the package manager"
	}
	if holder == "" {
		return Refusal{}, false
	}
	return Refusal{Ref: ref, Holder: holder, Reason: fmt.Sprintf(
		"%s %s defines %s %s, which belongs to %s", ref.Kind, ref.Name, crd.Ref.Kind, crd.Ref.Name, holder,
	)}, true
}

// APIService is a group and version that an aggregated API serves in place of the API server.
type APIService struct {
	// Name is the name of the APIService.
	Name           string
	Group, Version string
	// Service is the Service of the aggregated API, as "namespace/name".
	Service string
}

// Aggregated returns a refusal for a CRD, XRD or MRD with a served version that an aggregated API serves. The API
// server would store the CRD, and send all requests for its custom resources to the aggregated API.
func Aggregated(ref Ref, want Definition, services []APIService) []Refusal {
	var out []Refusal
	for _, s := range services {
		if s.Group != want.Group || !slices.Contains(want.Served, s.Version) {
			continue
		}
		out = append(out, Refusal{
			Ref: ref, Cause: AggregatedAPI,
			Reason: fmt.Sprintf(
				"%s %s: APIService %s sends all requests for %s/%s to the Service %s", ref.Kind, ref.Name, s.Name, s.Group,
				s.Version, s.Service,
			),
			Fix: fmt.Sprintf(
				"If nothing needs the aggregated API, delete it with `kubectl delete apiservice %s`. Otherwise ask the author of the package for another group or version.",
				s.Name,
			),
		})
	}
	return out
}

// shared returns the nonempty strings that are in both lists.
func shared(a, b []string) []string {
	var out []string
	for _, s := range a {
		if s != "" && slices.Contains(b, s) && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}
