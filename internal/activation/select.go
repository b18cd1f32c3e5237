package activation

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A Reason is why a kind is active. It is a word, such as "policy", or a word and the name of an object with a slash.
type Reason string

// The reasons that have no object.
const (
	// OfPackage: all kinds of the package are active, by its choice or because it cannot start without one of them.
	OfPackage Reason = "package"
	// Configures: the kind is no managed resource, and configures the runtime.
	Configures Reason = "runtime"
	// Named: a user chose the kind in the package.
	Named Reason = "user"
	// Kept: the kind was active before. Nothing else needs it.
	Kept Reason = "kept"
	// Crash: the runtime exited because it needs the kind.
	Crash Reason = "crash"
	// InUse: the kind would be deactivated, and custom resources of it exist.
	InUse Reason = "custom resources"
)

// ByPolicy returns the reason of a ManagedResourceActivationPolicy.
func ByPolicy(name string) Reason { return Reason("policy/" + name) }

// ByConfiguration returns the reason of the Compositions of a Configuration.
func ByConfiguration(name string) Reason { return Reason("configuration/" + name) }

// ByComposition returns the reason of a Composition that belongs to no Configuration.
func ByComposition(name string) Reason { return Reason("composition/" + name) }

// ByComposite returns the reason of a composite resource whose composition failed.
func ByComposite(kind, name string) Reason { return Reason(kind + "/" + name) }

// A Policy is a ManagedResourceActivationPolicy.
type Policy struct {
	Name     string
	Patterns []string
}

// A Use is a user of kinds.
type Use struct {
	By    Reason
	Kinds []schema.GroupKind
	// Open reports that it may use any kind of the Provider.
	Open bool
	// Failed reports that it failed because the kinds are inactive.
	Failed bool
}

// Needs is what decides about the kinds of a Provider.
type Needs struct {
	// Safe reports that the runtime works while only some of the kinds exist.
	Safe     bool
	Choice   Choice
	Policies []Policy
	// Uses activate kinds only with [Choice.Used], or with [Choice.OnDemand] those that failed.
	Uses []Use
	// Crashed are the CRDs of the kinds without which the runtime exited.
	Crashed []string
	// Before are the CRDs of the kinds that are active now.
	Before map[string]bool
	// Deactivate are patterns of the kinds that are not kept.
	Deactivate []string
	// InUse are the CRDs with custom resources among [Selection.Dropped] of a selection without InUse.
	InUse map[string]bool
}

// A Selection are the active kinds of a Provider.
type Selection struct {
	// Offered are all kinds of the package.
	Offered []Kind
	// Reasons are why kinds are active, by the names of their CRDs. Other kinds are inactive.
	Reasons map[string][]Reason
	// Dropped are the CRDs of the kinds that were active and are deactivated.
	Dropped []string
	// Selective reports that kinds can be inactive.
	Selective bool
	// Missed are the uses of inactive kinds, by the names of their CRDs.
	Missed map[string][]Reason
}

// IsActive reports whether the kind of a CRD is active.
func (s *Selection) IsActive(crd string) bool { return s == nil || len(s.Reasons[crd]) > 0 }

// Omits reports whether the CRD of a kind is left out, because the kind is inactive.
func (s *Selection) Omits(crd string) bool { return !s.IsActive(crd) }

// IsHeld reports whether a kind is active only because custom resources of it exist.
func (s *Selection) IsHeld() bool {
	for _, why := range s.Reasons {
		if slices.Contains(why, InUse) {
			return true
		}
	}
	return false
}

// MissedKinds describes the inactive kinds that something uses, each as "CRD (REASON, ...)", ordered.
func (s *Selection) MissedKinds() []string {
	if s == nil {
		return nil
	}
	var out []string
	for _, crd := range slices.Sorted(maps.Keys(s.Missed)) {
		users := make([]string, len(s.Missed[crd]))
		for i, r := range s.Missed[crd] {
			users[i] = string(r)
		}
		out = append(out, crd+" ("+strings.Join(users, ", ")+")")
	}
	return out
}

// NeededBy returns the CRDs of the inactive kinds that a program misses, according to what it wrote before it exited,
// ordered.
func (s *Selection) NeededBy(log string) []string {
	if s == nil || !s.Selective {
		return nil
	}
	missing := map[string]bool{}
	for _, k := range MissedIn(log) {
		missing[k.String()] = true
	}
	for _, m := range notFound.FindAllStringSubmatch(log, -1) {
		missing[m[1]] = true
	}
	var out []string
	for _, k := range s.Offered {
		if !s.IsActive(k.Name) && (missing[k.Name] || missing[k.GroupKind.String()]) {
			out = append(out, k.Name)
		}
	}
	slices.Sort(out)
	return out
}

// MissedIn returns the kinds that a message names as not served.
func MissedIn(message string) []schema.GroupKind {
	var out []schema.GroupKind
	for _, m := range noMatches.FindAllStringSubmatch(message, -1) {
		out = append(out, schema.GroupKind{Group: m[2], Kind: m[1]})
	}
	return out
}

// The errors of client-go for a kind that is not served: of its discovery, and of a request.
var (
	noMatches = regexp.MustCompile(`no matches for kind \\?"([A-Za-z0-9]+)\\?" in version \\?"([a-z0-9.-]+)/`)
	notFound  = regexp.MustCompile(`could not find the requested resource \((?:get|list|watch) ([a-z0-9.-]+)\)`)
)

// Inactive returns the CRDs of the inactive kinds, in the order of the package.
func (s *Selection) Inactive() []string {
	var out []string
	if s != nil {
		for _, k := range s.Offered {
			if !s.IsActive(k.Name) {
				out = append(out, k.Name)
			}
		}
	}
	return out
}

// Managed returns the numbers of managed resources that are active and that are offered.
func (s *Selection) Managed() (active, offered int) {
	for _, k := range s.Offered {
		if !k.Managed {
			continue
		}
		offered++
		if s.IsActive(k.Name) {
			active++
		}
	}
	return active, offered
}

// Select returns which of the offered kinds are active, and why.
func (n Needs) Select(offered []Kind) *Selection {
	out := &Selection{Offered: offered, Reasons: make(map[string][]Reason, len(offered)), Missed: map[string][]Reason{}}
	out.Selective = n.Safe && !n.Choice.All
	chosen, dropped := newIndex(), newIndex()
	chosen.add(Named, n.Choice.Patterns...)
	for _, p := range n.Policies {
		chosen.add(ByPolicy(p.Name), p.Patterns...)
	}
	chosen.add(Crash, n.Crashed...)
	dropped.add(Kept, n.Deactivate...)
	uses, activating := map[schema.GroupKind][]Reason{}, map[schema.GroupKind][]Reason{}
	var open []Reason
	for _, u := range n.Uses {
		if u.Open && n.Choice.Used && n.Choice.Implied && !slices.Contains(open, u.By) {
			open = append(open, u.By)
		}
		activates := n.Choice.Used && !u.Failed || n.Choice.OnDemand && u.Failed
		for _, k := range u.Kinds {
			if slices.Contains(uses[k], u.By) {
				continue
			}
			uses[k] = append(uses[k], u.By)
			if activates {
				activating[k] = append(activating[k], u.By)
			}
		}
	}
	for _, k := range offered {
		var why []Reason
		switch {
		case !n.Safe || n.Choice.All || k.Stated:
			why = append(why, OfPackage)
		case !k.Managed:
			why = append(why, Configures)
		}
		why = append(why, chosen.match(k.Name)...)
		why = append(why, activating[k.GroupKind]...)
		if len(why) == 0 {
			why = append(why, open...)
		}
		if len(why) == 0 && n.Before[k.Name] {
			switch {
			case len(dropped.match(k.Name)) == 0:
				why = append(why, Kept)
			case n.InUse[k.Name]:
				why = append(why, InUse)
			default:
				out.Dropped = append(out.Dropped, k.Name)
			}
		}
		if len(why) > 0 {
			out.Reasons[k.Name] = why
		} else if used := uses[k.GroupKind]; len(used) > 0 {
			out.Missed[k.Name] = used
		}
	}
	return out
}
