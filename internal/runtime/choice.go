package runtime

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/pkg/runtimedefaults"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// Name is the name of a way to run the runtimes of packages.
type Name string

// The ways to run the runtimes of packages.
const (
	// Deployment runs runtimes as Deployments of the cluster.
	Deployment Name = "Deployment"
	// Process runs runtimes as child processes, on Linux.
	Process Name = "Process"
	// External leaves runtimes to another system, which reports their health.
	External Name = "External"
	// None runs no runtimes: a package is healthy without its runtime.
	None Name = "None"
)

// Names returns all names.
func Names() []Name { return []Name{Deployment, Process, External, None} }

// Choice selects how the runtime of each package runs. The zero value runs none.
type Choice struct {
	// all is the choice for the packages to which no entry of some applies.
	all Name
	// some has the choices for all packages of a kind, with the key "Provider", and for single
	// packages, with the key "Provider/NAME".
	some map[string]Name
}

// Everywhere returns the choice of the same name for all packages.
func Everywhere(n Name) Choice { return Choice{all: n} }

// Annotations of the Lock with which the manager announces how it runs runtimes. Plans read them.
const (
	// AnnotationChoice is the way in which the manager runs runtimes, as [Choice.String] writes it.
	AnnotationChoice = "xpkg.dev/package-runtimes"
	// AnnotationPrivileges is a list of the privileges that runtime configurations may use, separated by commas.
	AnnotationPrivileges = "xpkg.dev/runtime-privileges"
	// AnnotationPlatform is the platform on which the manager runs processes, such as linux/amd64.
	AnnotationPlatform = "xpkg.dev/runtime-platform"
)

// String returns the choice in the form that ParseChoice parses, in a fixed order.
func (c Choice) String() string {
	if len(c.some) == 0 {
		return string(cmp.Or(c.all, None))
	}
	pairs := map[string]Name{}
	for _, kind := range []string{v1.ProviderKind, v1.FunctionKind} {
		pairs[kind] = c.Of(kind, "")
	}
	maps.Copy(pairs, c.some)
	return joinPairs(pairs)
}

// joinPairs returns pairs in the form that ParseChoice parses, in a fixed order.
func joinPairs(pairs map[string]Name) string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(pairs)) {
		out = append(out, key+"="+string(pairs[key]))
	}
	return strings.Join(out, ";")
}

// with returns the choice in which the runtime of a package runs in a certain way, for ParseChoice with the name for
// other packages.
func (c Choice) with(kind, name string, by, otherwise Name) string {
	pairs := map[string]Name{}
	for _, kind := range []string{v1.ProviderKind, v1.FunctionKind} {
		if chosen := c.Of(kind, ""); chosen != otherwise {
			pairs[kind] = chosen
		}
	}
	maps.Copy(pairs, c.some)
	pairs[kind+"/"+name] = by
	return joinPairs(pairs)
}

// ParseChoice parses a choice: a name for all packages, or pairs separated by semicolons, as in
// "Provider=External;Function=Deployment". The left side of a pair is a kind, or a kind and the
// name of a package, as in "Provider/hello=Process". If s has pairs, otherwise is the name for
// packages that no pair matches.
func ParseChoice(s string, otherwise Name) (Choice, error) {
	out := Choice{all: otherwise}
	if !strings.Contains(s, "=") {
		n, err := parseName(s)
		return Everywhere(n), err
	}
	out.some = map[string]Name{}
	for pair := range strings.SplitSeq(s, ";") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		left, right, ok := strings.Cut(pair, "=")
		left = strings.TrimSpace(left)
		if !ok {
			return Choice{}, fmt.Errorf("%q is not of the form KIND=RUNTIME", pair)
		}
		n, err := parseName(strings.TrimSpace(right))
		if err != nil {
			return Choice{}, err
		}
		kind, name, one := strings.Cut(left, "/")
		if kind != v1.ProviderKind && kind != v1.FunctionKind || one && name == "" {
			return Choice{},
				fmt.Errorf("%q is neither a kind of package with a runtime, Provider or Function, nor one such package", left)
		}
		if _, twice := out.some[left]; twice {
			return Choice{}, fmt.Errorf("%s is named twice", left)
		}
		out.some[left] = n
	}
	return out, nil
}

func parseName(s string) (Name, error) {
	if n := Name(s); slices.Contains(Names(), n) {
		return n, nil
	}
	return "", fmt.Errorf("%q is none of %v", s, Names())
}

// Of returns how the runtime of a package runs. It returns None for a kind without a
// runtime.
func (c Choice) Of(kind, name string) Name {
	if kind != v1.ProviderKind && kind != v1.FunctionKind {
		return None
	}
	for _, key := range []string{kind + "/" + name, kind} {
		if n, ok := c.some[key]; ok {
			return n
		}
	}
	if c.all == "" {
		return None
	}
	return c.all
}

// Select returns how the runtime of a package with some content runs, and the defaults of the runtime, which can be
// nil. It returns None for a package without a runtime: the choice runs none, the package shares its CRDs with
// namespaces, or its content has none.
func (c Choice) Select(p v1.Package, meta xpkg.Meta) (Name, *runtimedefaults.Defaults, error) {
	by := c.Of(p.PackageKind(), p.GetName())
	if by == None || revision.IsShared(p) {
		return None, nil, nil
	}
	defaults, err := runtimedefaults.Parse(meta.Annotations)
	if err == nil && defaults != nil && defaults.None {
		by = None
	}
	return by, defaults, err
}

// Uses reports whether the choice may select a name for any package.
func (c Choice) Uses(n Name) bool {
	if c.all == n {
		return true
	}
	for _, other := range c.some {
		if other == n {
			return true
		}
	}
	return false
}
