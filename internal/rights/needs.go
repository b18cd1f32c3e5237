package rights

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/failure"
)

// AnnotationPermissions on a package's metadata says that its program can live with
// less than everything on Secrets, ConfigMaps, Events and Leases; see [ParseNeeds].
const AnnotationPermissions = "meta.xpkg.dev/permissions"

// ErrInvalidPermissions is the failure of an annotation that says what a program
// needs in words that mean nothing.
var ErrInvalidPermissions = failure.Register(failure.Code{
	Name: "InvalidPermissions", Class: failure.Invalid,
	Cause: "The annotation meta.xpkg.dev/permissions does not say what the program of the package needs.",
	Fix:   `Write "minimal", or a list such as "secrets=namespace, configmaps=none"; the guide on permissions has every word.`,
})

// Reach is how much of a resource a program needs.
type Reach string

// The reaches, from the widest. The zero value is [Everything].
const (
	// Everything is every verb in every namespace.
	Everything Reach = "all"
	// Reading is get, list and watch in every namespace.
	Reading Reach = "read"
	// Recording is create, update and patch in every namespace: what it takes to
	// tell something without seeing what others told.
	Recording Reach = "record"
	// OwnNamespace is every verb in the namespace in which the program runs.
	OwnNamespace Reach = "namespace"
	// Nothing is nothing.
	Nothing Reach = "none"
)

// Needs is what a program needs of the resources that every provider gets. The zero
// value is everything, which is what the packages guide promises ("Provider
// Packages").
type Needs struct {
	Secrets, ConfigMaps, Events, Leases Reach
}

// minimal is the least with which a usual program can tell what it does and elect
// a leader.
var minimal = Needs{Secrets: Nothing, ConfigMaps: Nothing, Events: Recording, Leases: OwnNamespace}

// ParseNeeds reads the annotation [AnnotationPermissions]: items separated by
// commas, each RESOURCE=REACH or one of the words "full" and "minimal", which
// stand for all resources and come first. A resource that is not named is needed
// in full, or as the word says. The empty text means "full". It fails with
// InvalidPermissions.
func ParseNeeds(text string) (Needs, error) {
	var needs Needs
	fields := map[string]*Reach{
		"secrets": &needs.Secrets, "configmaps": &needs.ConfigMaps, "events": &needs.Events, "leases": &needs.Leases,
	}
	if strings.TrimSpace(text) == "" {
		return needs, nil
	}
	named := map[string]bool{}
	for i, item := range strings.Split(text, ",") {
		item = strings.TrimSpace(item)
		resource, reach, assigned := strings.Cut(item, "=")
		resource, reach = strings.TrimSpace(resource), strings.TrimSpace(reach)
		switch {
		case item == "full" && i == 0:
		case item == "minimal" && i == 0:
			needs = minimal
		case !assigned:
			return Needs{}, invalidNeeds("%.60q is neither RESOURCE=REACH nor, as the first word, full or minimal", item)
		case fields[resource] == nil:
			return Needs{}, invalidNeeds("%.60q is none of %s", resource, strings.Join(slices.Sorted(maps.Keys(fields)), ", "))
		case named[resource]:
			return Needs{}, invalidNeeds("%s is named twice", resource)
		case !slices.Contains([]Reach{Everything, Reading, Recording, OwnNamespace, Nothing}, Reach(reach)):
			return Needs{}, invalidNeeds("%.60q is none of all, read, record, namespace, none", reach)
		default:
			*fields[resource], named[resource] = Reach(reach), true
		}
	}
	return needs, nil
}

func invalidNeeds(why string, args ...any) error {
	return ErrInvalidPermissions.New(fmt.Errorf(why, args...), "cannot read the annotation %s", AnnotationPermissions)
}
