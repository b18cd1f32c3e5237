package packages

import (
	"slices"
	"strings"
	"time"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/activation"
	"github.com/xpkg-dev/xpkg/internal/cli/connection"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/cli/view"
	"github.com/xpkg-dev/xpkg/internal/inventory"
	"github.com/xpkg-dev/xpkg/internal/operation"
	"github.com/xpkg-dev/xpkg/internal/spelling"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// Failures of the activation of kinds.
var (
	ErrKindNotOffered = errcode.Code{
		Name: "KindNotOffered", Class: errcode.NotFound,
		Cause: "No installed provider offers the kind.",
		Fix:   "List the kinds of all providers with `xpkg kinds --all`, or install the provider of the kind.",
	}
	ErrKindNeeded = errcode.Code{
		Name: "KindNeeded", Class: errcode.Conflict,
		Cause: "A kind cannot be deactivated, because something needs it, or custom resources of it exist.",
		Fix:   "Remove what needs the kind, or delete its custom resources, and deactivate it then. A kind that the runtime or the package needs stays active as long as the package.",
	}
)

// kindArgs are the kinds that a command activates or deactivates, and how.
type kindArgs struct {
	Kinds  []string      `arg:"" name:"kind" help:"Kinds, each as the name of a CRD such as buckets.s3.aws.upbound.io, as KIND.GROUP, as KIND, or as a pattern of names."`
	Wait   time.Duration `short:"w" placeholder:"DURATION" help:"Wait this long, such as 2m, until the packages are healthy."`
	DryRun bool          `help:"Show the changes without making them."`
	terminal.ConsentFlag
	connection.ClusterFlags
	planFlags
	view.OutputFlag
}

// change gives each Provider that offers one of the kinds the annotations that wish returns for it and for its choice.
func (c *kindArgs) change(
	env *terminal.Env, wish func(*clusterPlanner, offer, activation.Choice) (v1.Package, error),
) error {
	r := review{
		dryRun: c.DryRun, wait: c.Wait, ConsentFlag: c.ConsentFlag, ClusterFlags: c.ClusterFlags, OutputFlag: c.OutputFlag,
		needsPlan: true,
	}
	return r.change(env, c.planFlags, func(pl *clusterPlanner, all *inventory.Inventory) ([]*operation.Step, error) {
		offers, err := c.offers(env, pl, all)
		if err != nil {
			return nil, err
		}
		var steps []*operation.Step
		for _, o := range offers {
			choice, err := pl.Choice(env.Context, o.provider)
			if err != nil {
				return nil, err
			}
			want, err := wish(pl, o, choice)
			if err != nil {
				return nil, err
			}
			same := activation.Wish(want.GetAnnotations()) == activation.Wish(o.provider.GetAnnotations())
			steps = append(steps, &operation.Step{Live: o.provider, Want: want, Same: same})
		}
		return steps, nil
	})
}

// ActivateCmd implements `xpkg activate`.
type ActivateCmd struct{ kindArgs }

// Run adds kinds to the choice of the Providers that offer them.
func (c *ActivateCmd) Run(env *terminal.Env) error {
	return c.change(env, func(pl *clusterPlanner, o offer, choice activation.Choice) (v1.Package, error) {
		want := o.provider.DeepCopyObject().(v1.Package)
		isOpen := false
		if choice.Implied { // A Configuration may use any of the kinds.
			kinds, err := pl.KindsOf(env.Context, want)
			if err != nil {
				return nil, err
			}
			isOpen = len(kinds.Inactive()) == 0
		}
		if choice.All || isOpen {
			view.Notes(env.Stderr, "all kinds of "+inventory.ShortName(o.provider)+" are active already")
			return want, nil
		}
		choice.Patterns = slices.Compact(slices.Sorted(slices.Values(append(choice.Patterns, o.chosen...))))
		setChoice(want, activation.AnnotationKinds, choice.String())
		dropped, err := activation.ParsePatterns(want.GetAnnotations()[activation.AnnotationDeactivate])
		if err != nil {
			return nil, err
		}
		kept := slices.DeleteFunc(dropped, func(p string) bool { return slices.Contains(o.chosen, p) })
		if want.GetAnnotations()[activation.AnnotationDeactivate] != "" {
			setChoice(want, activation.AnnotationDeactivate, strings.Join(kept, ","))
		}
		return want, nil
	})
}

// DeactivateCmd implements `xpkg deactivate`.
type DeactivateCmd struct{ kindArgs }

// Run deactivates kinds without custom resources that nothing needs.
func (c *DeactivateCmd) Run(env *terminal.Env) error {
	return c.change(env, func(pl *clusterPlanner, o offer, choice activation.Choice) (v1.Package, error) {
		return c.deactivated(env, pl, o, choice)
	})
}

// deactivated returns a Provider with kinds to deactivate. It fails with KindNeeded for a kind that is named and stays
// active.
func (c *DeactivateCmd) deactivated(
	env *terminal.Env, pl *clusterPlanner, o offer, choice activation.Choice,
) (v1.Package, error) {
	want := o.provider.DeepCopyObject().(v1.Package)
	if choice.All {
		choice = activation.Choice{Used: true}
	}
	if !choice.Implied { // Otherwise the choice goes on to depend on what the Configurations use.
		choice.Patterns = slices.DeleteFunc(choice.Patterns, func(p string) bool {
			return slices.Contains(o.chosen, p) || activation.Match(o.chosen, p)
		})
		setChoice(want, activation.AnnotationKinds, choice.String())
	}
	dropped, err := activation.ParsePatterns(
		want.GetAnnotations()[activation.AnnotationDeactivate] + "," + strings.Join(o.chosen, ","),
	)
	if err != nil {
		return nil, err
	}
	slices.Sort(dropped)
	setChoice(want, activation.AnnotationDeactivate, strings.Join(dropped, ","))
	after, err := pl.KindsOf(env.Context, want)
	if err != nil {
		return nil, err
	}
	for _, name := range o.chosen {
		if why := after.Reasons[name]; len(why) > 0 {
			return nil, ErrKindNeeded.New(nil, "%s stays active because of %s", name, few(why))
		}
	}
	return want, nil
}

// offer are the kinds of a Provider that a command chooses: names of CRDs, or patterns.
type offer struct {
	provider v1.Package
	chosen   []string
}

// offers returns the Providers that offer the kinds of the command line. It fails with KindNotOffered.
func (c *kindArgs) offers(env *terminal.Env, pl *clusterPlanner, all *inventory.Inventory) ([]offer, error) {
	var out []offer
	found := map[string]bool{}
	var names []string
	for _, p := range all.Packages {
		kinds, err := pl.OfferedKinds(env.Context, p)
		if err != nil {
			return nil, err
		}
		o := offer{provider: p}
		for _, k := range kinds {
			names = append(names, k.Name, k.Kind)
			for _, word := range c.Kinds {
				isPattern := strings.ContainsAny(word, "*?[")
				switch {
				case isPattern && activation.Match([]string{word}, k.Name):
					found[word] = true
					o.chosen = append(o.chosen, word)
				case !isPattern && (strings.EqualFold(word, k.Name) || strings.EqualFold(word, k.GroupKind.String()) ||
					strings.EqualFold(word, k.Kind)):
					found[word] = true
					o.chosen = append(o.chosen, k.Name)
				}
			}
		}
		if len(o.chosen) > 0 {
			slices.Sort(o.chosen)
			o.chosen = slices.Compact(o.chosen)
			out = append(out, o)
		}
	}
	for _, word := range c.Kinds {
		if err := activation.CheckPattern(word); err != nil {
			return nil, errcode.From(err).WithDo("Write the names of CRDs, such as buckets.s3.aws.upbound.io; * stands for any characters.")
		}
		if !found[word] {
			return nil, notOffered(word, names)
		}
	}
	return out, nil
}

func notOffered(word string, names []string) error {
	err := ErrKindNotOffered.New(nil, "no installed provider offers %s", terminal.Safe(word))
	if alike := spelling.Alike(word, names); len(alike) > 0 {
		return err.WithDo("Did you mean %s? `xpkg kinds --all` lists the kinds of all providers.", wording.Few(alike, len(alike), " or "))
	}
	return err
}
