package rbac

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// AnnotationPermissions on a package's metadata restricts the access of its runtime to
// Secrets, ConfigMaps, Events and Leases; see [ParseNeeds].
const AnnotationPermissions = "meta.xpkg.dev/permissions"

// ErrInvalidPermissions is the code for an invalid annotation of needs.
var ErrInvalidPermissions = errcode.Code{
	Name: "InvalidPermissions", Class: errcode.Invalid,
	Cause: "The annotation meta.xpkg.dev/permissions is not valid.",
	Fix:   `Write "minimal", or a list such as "secrets=namespace, configmaps=none"; the guide on permissions lists all keywords.`,
}

// Reach is the extent of access to a resource.
type Reach string

// Reaches, widest first. The zero value is [Everything].
const (
	// Everything allows every verb in every namespace.
	Everything Reach = "all"
	// Reading allows get, list and watch in every namespace.
	Reading Reach = "read"
	// Recording allows create, update and patch in every namespace, which is sufficient
	// to record events without reading them.
	Recording Reach = "record"
	// OwnNamespace allows every verb in the namespace of the runtime.
	OwnNamespace Reach = "namespace"
	// Nothing allows nothing.
	Nothing Reach = "none"
)

// Needs is the access that a runtime needs to the resources that every provider can
// access by default. The zero value is full access (packages guide, "Provider Packages").
type Needs struct {
	Secrets, ConfigMaps, Events, Leases Reach
}

// minimal is sufficient for a typical runtime, which records events and elects a leader.
var minimal = Needs{Secrets: Nothing, ConfigMaps: Nothing, Events: Recording, Leases: OwnNamespace}

// ParseNeeds parses the annotation [AnnotationPermissions]: items separated by commas,
// each RESOURCE=REACH or one of the words "full" and "minimal", which apply to all
// resources and come first. The default of a resource is full access, or the given word.
// An empty text means "full". It fails with ErrInvalidPermissions.
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
			return Needs{}, invalidNeeds("%.60q is not RESOURCE=REACH, and full and minimal must be the first word", item)
		case fields[resource] == nil:
			return Needs{},
				invalidNeeds("%.60q is not one of %s", resource, strings.Join(slices.Sorted(maps.Keys(fields)), ", "))
		case named[resource]:
			return Needs{}, invalidNeeds("%s is named twice", resource)
		case !slices.Contains([]Reach{Everything, Reading, Recording, OwnNamespace, Nothing}, Reach(reach)):
			return Needs{}, invalidNeeds("%.60q is not one of all, read, record, namespace, none", reach)
		default:
			*fields[resource], named[resource] = Reach(reach), true
		}
	}
	return needs, nil
}

func invalidNeeds(why string, args ...any) error {
	return ErrInvalidPermissions.New(fmt.Errorf(why, args...), "cannot read the annotation %s", AnnotationPermissions)
}
