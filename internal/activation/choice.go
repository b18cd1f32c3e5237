package activation

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// AnnotationKinds on a Provider chooses its active kinds: "all"; "policies", for those that policies activate; or a list
// with commas of "used", for those that Compositions use, or "on-demand", for these and those without which the
// composition of a composite resource failed, and of the names of CRDs, or patterns of names.
const AnnotationKinds = "xpkg.dev/kinds"

// AnnotationDeactivate on a Provider lists the kinds that are deactivated once nothing needs them and no custom
// resource of them exists: names of CRDs, or patterns of names, with commas.
const AnnotationDeactivate = "xpkg.dev/deactivate"

// Annotations returns the annotations that choose the kinds of a Provider.
func Annotations() []string { return []string{AnnotationKinds, AnnotationDeactivate} }

// Wish returns the values of these annotations with a semicolon between them, for comparisons.
func Wish(annotations map[string]string) string {
	return annotations[AnnotationKinds] + ";" + annotations[AnnotationDeactivate]
}

// Words of AnnotationKinds.
const (
	All  = "all"
	Used = "used"
	// OnDemand is for functions that compose resources of kinds that no reader of their input can see.
	OnDemand = "on-demand"
	// Policies is the choice of a list without other words and without names: only policies activate kinds.
	Policies = "policies"
)

// ErrPattern is the code for a name or a pattern of kinds that is not valid.
var ErrPattern = errcode.Code{
	Name: "InvalidKinds", Class: errcode.Invalid,
	Cause: "The kinds of a package are chosen with a pattern that matches nothing, because it is malformed.",
	Fix:   "Write all, used, on-demand, policies, or the names of CRDs, such as buckets.s3.aws.upbound.io; * stands for any characters.",
}

// A Choice is which kinds of a Provider a user wants.
type Choice struct {
	// All activates all kinds.
	All bool
	// Used activates the kinds that Compositions use.
	Used bool
	// OnDemand activates the kinds without which the composition of a composite resource failed.
	OnDemand bool
	// Patterns activate the kinds whose CRDs match.
	Patterns []string
	// Implied reports that the package has no choice. Then uses that are not known activate all kinds.
	Implied bool
}

// ParseChoice reads a value of AnnotationKinds. It fails with InvalidKinds.
func ParseChoice(value string) (Choice, error) {
	var out Choice
	items, err := ParsePatterns(value)
	for _, item := range items {
		switch item {
		case All:
			out.All = true
		case Used:
			out.Used = true
		case OnDemand:
			out.Used, out.OnDemand = true, true
		case Policies:
		default:
			out.Patterns = append(out.Patterns, item)
		}
	}
	return out, err
}

// String returns the value of AnnotationKinds for a choice.
func (c Choice) String() string {
	if c.All {
		return All
	}
	var items []string
	switch {
	case c.OnDemand:
		items = append(items, OnDemand)
	case c.Used:
		items = append(items, Used)
	}
	if items = append(items, c.Patterns...); len(items) == 0 {
		return Policies
	}
	return strings.Join(items, ",")
}

// ParsePatterns reads a list of patterns with commas, without repetitions. It fails with InvalidKinds for a malformed
// pattern.
func ParsePatterns(value string) ([]string, error) {
	var out []string
	for item := range strings.SplitSeq(value, ",") {
		item = strings.TrimSpace(item)
		if item == "" || slices.Contains(out, item) {
			continue
		}
		if err := CheckPattern(item); err != nil {
			return nil, err
		}
		out = append(out, item)
	}
	return out, nil
}

// CheckPattern fails with InvalidKinds for a malformed pattern, which matches nothing.
func CheckPattern(pattern string) error {
	if _, err := filepath.Match(pattern, ""); err != nil {
		return ErrPattern.New(nil, "the pattern %.100q is malformed", pattern)
	}
	return nil
}
