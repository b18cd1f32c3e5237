package rbac

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// AnnotationPermissions on a package's metadata declares that its runtime needs less than
// full access to Secrets, ConfigMaps, Events and Leases; see [ParseNeeds].
const AnnotationPermissions = "meta.xpkg.dev/permissions"

// ErrInvalidPermissions is the code for an invalid annotation of needs.
var ErrInvalidPermissions = errcode.Code{
	Name: "InvalidPermissions", Class: errcode.Invalid,
	Cause: "The annotation meta.xpkg.dev/permissions is not valid.",
	Fix:   `Write "minimal", or a list such as "secrets=namespace, configmaps=none"; the guide on permissions lists all keywords.`,
}

// Reach is the extent of access to a resource.
type Reach string

// The reaches, from the widest. The zero value is [Everything].
const (
	// Everything is every verb in every namespace.
	Everything Reach = "all"
	// Reading is get, list and watch in every namespace.
	Reading Reach = "read"
	// Recording is create, update and patch in every namespace, which suffices for
	// recording events without reading others.
	Recording Reach = "record"
	// OwnNamespace is every verb in the namespace of the runtime.
	OwnNamespace Reach = "namespace"
	// Nothing is nothing.
	Nothing Reach = "none"
)

// Needs is the access that a runtime needs to the resources that every provider gets
// access to. The zero value is full access, which the packages guide promises ("Provider
// Packages").
type Needs struct {
	Secrets, ConfigMaps, Events, Leases Reach
}

// minimal suffices for a typical runtime to record events and elect a leader.
var minimal = Needs{Secrets: Nothing, ConfigMaps: Nothing, Events: Recording, Leases: OwnNamespace}

// ParseNeeds parses the annotation [AnnotationPermissions]: items separated by commas,
// each RESOURCE=REACH or one of the words "full" and "minimal", which apply to all
// resources and come first. The default of a resource is full access, or the given word.
// An empty text means "full". It fails with InvalidPermissions.
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
