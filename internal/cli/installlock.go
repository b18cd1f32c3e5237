package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/format"
	"github.com/xpkg-dev/xpkg/internal/lockfile"
	"github.com/xpkg-dev/xpkg/internal/oci"
	"github.com/xpkg-dev/xpkg/internal/plan"
	"github.com/xpkg-dev/xpkg/internal/preview"
)

// step is what becomes of one package of a lock file.
type step struct {
	locked lockfile.Package
	// live is what is installed of it, under whatever name, or nil; want is what is to
	// be installed.
	live, want v1.Package
	// plan is nil when nothing changes, and when none could be made.
	plan *preview.Plan
	// same says that the package is installed as it is locked.
	same bool
}

// runLock installs what a lock file has: each package after what it needs, so that
// each can become healthy.
func (c *installCmd) runLock(env *Env) (err error) {
	if c.Kind != "" {
		return ErrUsage.New(nil, "both a package and a lock file are to be installed").WithDo("Leave one of them out.")
	}
	f, err := readLock(c.Lock, false)
	if err != nil {
		return err
	}
	pl, err := c.open(c.clusterFlags)
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, pl.close()) }()
	steps, err := c.steps(env.Context, pl.client, f)
	if err != nil {
		return err
	}
	if err := c.planSteps(env, pl, steps); err != nil {
		return err
	}
	if c.DryRun {
		return c.previewSteps(env, steps)
	}
	if err := c.consentSteps(env, steps); err != nil {
		return err
	}
	return c.carryOutSteps(env, pl.client, steps)
}

// steps compares the file with what is installed.
func (c *installCmd) steps(ctx context.Context, cluster client.Client, f lockfile.File) ([]*step, error) {
	all, err := load(ctx, cluster)
	if err != nil {
		return nil, err
	}
	var out []*step
	for _, p := range f.Order() {
		s := &step{locked: p, live: all.locked(p)}
		if s.live != nil {
			s.want = s.live.DeepCopyObject().(v1.Package)
			s.same = isLocked(s.live, p)
		} else {
			s.want = v1.NewPackage(string(p.Kind))
			s.want.SetName(oci.ToDNSLabel(p.Repository().Repository))
			c.configure(s.want)
			if other := all.named(s.want); other != nil {
				return nil, installedOtherwise(other, p.Reference().String())
			}
		}
		if !s.same {
			s.want.PackageSpec().Package = p.Reference().String()
		}
		out = append(out, s)
	}
	return out, nil
}

// locked gives the package that is installed from the repository of a locked one or,
// under whatever name, with the same content.
func (i *installed) locked(p lockfile.Package) v1.Package {
	var same v1.Package
	for _, x := range i.packages {
		if x.PackageKind() != string(p.Kind) {
			continue
		}
		if ref, err := oci.ParseReference(x.PackageSpec().Package, oci.ParseOptions{}); err == nil && ref.Name() == p.Package {
			return x
		}
		if x.PackageStatus().ResolvedDigest == p.Digest.String() {
			same = x
		}
	}
	return same
}

// named gives the package of the same kind and name.
func (i *installed) named(p v1.Package) v1.Package {
	for _, x := range i.packages {
		if x.PackageKind() == p.PackageKind() && x.GetName() == p.GetName() {
			return x
		}
	}
	return nil
}

// isLocked reports whether a package is installed with the content that is locked.
func isLocked(live v1.Package, p lockfile.Package) bool {
	spec, status := live.PackageSpec(), live.PackageStatus()
	if ref, err := oci.ParseReference(spec.Package, oci.ParseOptions{}); err == nil && !ref.Digest.IsZero() {
		return ref.Digest == p.Digest
	}
	return status.CurrentIdentifier == spec.Package && status.ResolvedDigest == p.Digest.String()
}

// planSteps plans every step as if those before it had been made, and fails when one
// of them cannot be made or the file does not tell the truth.
func (c *installCmd) planSteps(env *Env, pl *planner, steps []*step) error {
	progress := newProgress(env.Stderr)
	defer progress.end()
	foreseen := &foreseen{Reader: pl.Reader}
	pl.Reader = foreseen
	for _, s := range steps {
		if s.same {
			continue
		}
		progress.say("planning to install %s from %s", shortName(s.want), s.locked.Reference())
		p, err := pl.Install(env.Context, s.want)
		if err = planFailed(err, "install "+shortName(s.want)); unseen(err) {
			progress.end()
			env.noPlan(err)
			return nil
		}
		if err == nil {
			err = p.Refused()
		}
		if err == nil {
			err = truthful(s, p)
		}
		if err != nil {
			return err
		}
		s.plan = p
		foreseen.packages = append(foreseen.packages, s.want)
	}
	return nil
}

// truthful compares the file with what the content needs, which the plan knows.
func truthful(s *step, p *preview.Plan) error {
	if s.want.PackageSpec().SkipDependencyResolution {
		return nil // Then the plan does not tell.
	}
	var needs []format.Dependency
	for _, d := range p.Dependencies {
		needs = append(needs, format.Dependency{Package: d.Package, Constraint: d.Constraint})
	}
	return s.locked.Matches(s.locked.Kind, needs)
}

// previewSteps prints the plans, and ends with the exit code for pending changes.
func (c *installCmd) previewSteps(env *Env, steps []*step) error {
	plans := []*preview.Plan{}
	for _, s := range steps {
		if s.plan != nil {
			plans = append(plans, s.plan)
		}
	}
	err := c.print(env.Stdout, plans, func(w io.Writer) error { return writePlans(w, plans) })
	if err == nil && len(plans) > 0 {
		return changesPending
	}
	return err
}

func writePlans(w io.Writer, plans []*preview.Plan) error {
	if len(plans) == 0 {
		_, err := io.WriteString(w, "Nothing to do.\n")
		return err
	}
	for i, p := range plans {
		if i > 0 {
			fmt.Fprintln(w)
		}
		if err := writePlan(w, p); err != nil {
			return err
		}
	}
	return nil
}

// consentSteps shows the plans and asks, as an install of one package does. What is
// installed already changes only when somebody says yes.
func (c *installCmd) consentSteps(env *Env, steps []*step) error {
	changes, updates := 0, 0
	var plans []*preview.Plan
	for _, s := range steps {
		if s.same {
			continue
		}
		changes++
		if s.live != nil {
			updates++
		}
		if s.plan != nil {
			plans = append(plans, s.plan)
		}
	}
	switch {
	case c.Yes || changes == 0:
		return nil
	case env.interactive():
		if err := writePlans(env.Stderr, plans); err != nil {
			return err
		}
		return env.confirm()
	case updates > 0:
		return c.consent(env, "change "+plural(updates, "installed package"))
	}
	return nil
}

// carryOutSteps writes the objects, and waits for all of them if that was asked for.
func (c *installCmd) carryOutSteps(env *Env, cluster client.Client, steps []*step) error {
	objects, words := make([]v1.Package, len(steps)), make([]string, len(steps))
	for i, s := range steps {
		var err error
		if objects[i], words[i], err = s.carryOut(env.Context, cluster); err != nil {
			return err
		}
	}
	if c.Wait > 0 {
		for i, p := range objects {
			if err := waitInstalled(env, cluster, p, c.Wait, false); err != nil {
				return err
			}
			words[i] = "healthy"
		}
	}
	return c.print(env.Stdout, asList(objects), func(w io.Writer) error {
		for i, p := range objects {
			if _, err := fmt.Fprintf(w, "%s %s (%s)\n", shortName(p), words[i], safe(p.PackageSpec().Package)); err != nil {
				return err
			}
		}
		return nil
	})
}

// carryOut makes the one write of a step.
func (s *step) carryOut(ctx context.Context, cluster client.Client) (v1.Package, string, error) {
	word := "created"
	if s.live != nil {
		word = "updated"
	}
	switch kind := s.want.GetObjectKind().GroupVersionKind(); {
	case s.same:
		return s.live, "unchanged", nil
	case s.plan != nil:
		done, err := carryOut(ctx, cluster, s.plan, metav1.DeletePropagationBackground)
		return done, word, err
	case s.live != nil:
		err := cluster.Update(ctx, s.want, client.FieldOwner(plan.FieldManager))
		s.want.GetObjectKind().SetGroupVersionKind(kind)
		return s.want, word, classify(err, "update %s", shortName(s.want))
	default:
		err := cluster.Create(ctx, s.want, client.FieldOwner(plan.FieldManager))
		s.want.GetObjectKind().SetGroupVersionKind(kind)
		return s.want, word, classify(err, "create %s", shortName(s.want))
	}
}

// foreseen is a cluster in which some packages are as they will be.
type foreseen struct {
	client.Reader
	packages []v1.Package
}

// List implements client.Reader.
func (f *foreseen) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if err := f.Reader.List(ctx, list, opts...); err != nil {
		return err
	}
	switch l := list.(type) {
	case *v1.ProviderList:
		l.Items = foresee(l.Items, f.packages)
	case *v1.ConfigurationList:
		l.Items = foresee(l.Items, f.packages)
	case *v1.FunctionList:
		l.Items = foresee(l.Items, f.packages)
	}
	return nil
}

// foresee puts packages of one kind in the place of those with their names, or beside
// them.
func foresee[T any, P interface {
	*T
	v1.Package
}](items []T, packages []v1.Package) []T {
	for _, p := range packages {
		wanted, ok := p.(P)
		if !ok {
			continue
		}
		found := false
		for i := range items {
			if P(&items[i]).GetName() == p.GetName() {
				items[i], found = *wanted, true
			}
		}
		if !found {
			items = append(items, *wanted)
		}
	}
	return items
}
