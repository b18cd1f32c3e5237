package packages

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/activation"
	"github.com/xpkg-dev/xpkg/internal/cli/connection"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/cli/view"
	"github.com/xpkg-dev/xpkg/internal/inventory"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/desired"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// KindsCmd implements `xpkg kinds`.
type KindsCmd struct {
	Names []inventory.Name `arg:"" optional:"" name:"name" complete:"package" help:"Providers whose active kinds are shown, each as NAME, KIND/NAME or KIND NAME. Default is a line for each Provider."`
	All   bool             `help:"Show inactive kinds too, of all Providers if none is named."`
	connection.ClusterFlags
	planFlags
	view.ListOutputFlag
}

// Validate returns an error for a name that is not valid.
func (c *KindsCmd) Validate() error { return inventory.ValidateNames(c.Names) }

// providerKinds are the kinds of a Provider as commands print them.
type providerKinds struct {
	Provider string `json:"provider"`
	// Choice is the value of the annotation that chooses kinds, or its default.
	Choice string `json:"choice"`
	// Active and Offered are the numbers of managed resources.
	Active  int        `json:"active"`
	Offered int        `json:"offered"`
	Kinds   []kindView `json:"kinds"`
}

// kindView is a kind as commands print it.
type kindView struct {
	// Name is the name of the CRD.
	Name   string `json:"name"`
	Kind   string `json:"kind"`
	Group  string `json:"group"`
	Active bool   `json:"active"`
	// CustomResources is their number; -1 if it is not known.
	CustomResources int64               `json:"customResources"`
	NeededBy        []activation.Reason `json:"neededBy,omitempty"`
	// UsedBy is what uses an inactive kind.
	UsedBy []activation.Reason `json:"usedBy,omitempty"`
	// ReferredToBy are the CRDs of the active kinds with fields that refer to an inactive kind.
	ReferredToBy []string `json:"referredToBy,omitempty"`
}

// Run prints which kinds of Providers are active, and why.
func (c *KindsCmd) Run(env *terminal.Env) (err error) {
	pl, err := c.open(env, c.ClusterFlags)
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, pl.close()) }()
	all, err := inventory.LoadNamed(env.Context, pl.Client)
	if err != nil {
		return err
	}
	var packages []v1.Package
	for _, name := range c.Names {
		p, err := all.Find(name)
		if err != nil {
			return err
		}
		if p.PackageKind() != v1.ProviderKind {
			return terminal.ErrUsage.New(nil, "%s is no Provider, and only Providers have kinds that can be inactive",
				inventory.ShortName(p)).WithDo("List the Providers with `xpkg kinds`.")
		}
		if !slices.Contains(packages, p) {
			packages = append(packages, p)
		}
	}
	if len(c.Names) == 0 {
		packages = slices.DeleteFunc(all.Packages, func(p v1.Package) bool { return p.PackageKind() != v1.ProviderKind })
	}
	views := []providerKinds{}
	for _, p := range packages {
		v, err := c.view(env, pl, p)
		if errors.Is(err, activation.ErrPattern) && len(c.Names) == 0 {
			view.Notes(env.Stderr, errcode.Message(err)) // The others are shown.
			continue
		}
		if err != nil {
			return err
		}
		if v != nil {
			views = append(views, *v)
		}
	}
	return c.Print(env.Stdout, c.list(views))
}

// listsKinds reports whether the command lists kinds, and not Providers.
func (c *KindsCmd) listsKinds() bool { return c.All || len(c.Names) > 0 }

// view returns the kinds of a Provider, or nil if it has no active revision.
func (c *KindsCmd) view(env *terminal.Env, pl *clusterPlanner, p v1.Package) (*providerKinds, error) {
	kinds, err := pl.KindsOf(env.Context, p)
	if err != nil || kinds == nil {
		return nil, err
	}
	choice, err := pl.Choice(env.Context, p)
	if err != nil {
		return nil, err
	}
	out := &providerKinds{Provider: inventory.ShortName(p), Choice: choice.String()}
	out.Active, out.Offered = kinds.Managed()
	var active []string
	for _, k := range kinds.Offered {
		if kinds.IsActive(k.Name) {
			active = append(active, k.Name)
		}
	}
	counts := map[string]int64{}
	if c.listsKinds() {
		found, err := pl.Cluster.CustomResources(env.Context, active, false)
		if err != nil {
			return nil, err
		}
		for _, r := range found {
			counts[r.CRD] = r.Count
			if r.Unknown != "" {
				counts[r.CRD] = -1
			}
		}
	}
	referredTo, err := kinds.MayNeed()
	if err != nil {
		return nil, err
	}
	for _, k := range kinds.Offered {
		out.Kinds = append(out.Kinds, kindView{
			Name: k.Name, Kind: k.Kind, Group: k.Group, Active: kinds.IsActive(k.Name), CustomResources: counts[k.Name],
			NeededBy: kinds.Reasons[k.Name], UsedBy: kinds.Missed[k.Name], ReferredToBy: referredTo[k.Name],
		})
	}
	return out, nil
}

// list returns the list that is printed: of Providers, or of the kinds of named ones.
func (c *KindsCmd) list(views []providerKinds) view.List {
	out := view.List{Value: views}
	if !c.listsKinds() {
		out.Table = view.Table{
			Header: []string{"PROVIDER", "ACTIVE", "OFFERED", "CHOICE"}, Empty: "No provider is installed.",
		}
		for _, v := range views {
			out.Names = append(out.Names, v.Provider)
			out.Table.Rows = append(out.Table.Rows, []string{
				v.Provider, strconv.Itoa(v.Active), strconv.Itoa(v.Offered), v.Choice,
			})
		}
		return out
	}
	out.Table = view.Table{
		Header: []string{"KIND", "STATE", "OBJECTS", "NEEDED BY"}, Empty: "No kind is active; --all shows the others.",
	}
	for _, v := range views {
		for _, k := range v.Kinds {
			if !k.Active && !c.All && len(k.UsedBy)+len(k.ReferredToBy) == 0 {
				continue
			}
			out.Names = append(out.Names, k.Name)
			out.Table.Rows = append(out.Table.Rows, []string{k.Name, stateOf(k.Active), countOf(k), whyOf(k)})
		}
	}
	return out
}

func stateOf(active bool) string {
	if active {
		return "Active"
	}
	return "Inactive"
}

func countOf(k kindView) string {
	if k.CustomResources < 0 {
		return "?"
	}
	return strconv.FormatInt(k.CustomResources, 10)
}

// whyOf returns why a kind is active, or what uses an inactive one.
func whyOf(k kindView) string {
	switch {
	case len(k.UsedBy) > 0:
		return few(k.UsedBy) + ", but the choice excludes it"
	case len(k.ReferredToBy) > 0:
		return "maybe: a field of " + few(k.ReferredToBy) + " refers to it"
	}
	return few(k.NeededBy)
}

// maxReasons limits the reasons of a kind in a table.
const maxReasons = 3

func few[T ~string](all []T) string {
	texts := make([]string, len(all))
	for i, r := range all {
		texts[i] = string(r)
	}
	return wording.Few(texts, maxReasons, ", ")
}

// kindsFlag chooses the active kinds of a Provider.
type kindsFlag struct {
	KindsOf []string `name:"kinds" placeholder:"all|used|on-demand|NAME,..." help:"Active kinds of a provider with the capability safe-start: all; used, which are those that Compositions, policies and users need; on-demand, which are these and those without which a composite resource fails; or the names of CRDs, or patterns of them. A package installed as a dependency has the used ones, another one has all."`
}

// choose records the choice in a package.
func (f kindsFlag) choose(p v1.Package) error {
	if f.KindsOf == nil {
		return nil
	}
	if p.PackageKind() != v1.ProviderKind {
		return terminal.ErrUsage.New(nil, "%s is no Provider, so --kinds cannot be used", inventory.ShortName(p))
	}
	value := strings.Join(f.KindsOf, ",")
	if strings.Trim(value, ", ") == "" {
		return terminal.ErrUsage.New(nil, "--kinds is empty").WithDo("Use --kinds policies for the kinds that policies activate alone.")
	}
	choice, err := activation.ParseChoice(value)
	if err != nil {
		return err
	}
	setChoice(p, activation.AnnotationKinds, choice.String())
	return nil
}

func setChoice(p v1.Package, key, value string) {
	p.SetAnnotations(desired.Overlay(p.GetAnnotations(), map[string]string{key: value}))
}
